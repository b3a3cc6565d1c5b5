// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/report"
)

func emptyStatus() v1alpha1.NodePodProbeStatus { return v1alpha1.NodePodProbeStatus{} }

// report makes the report that the agent of a node would, and marks the pods by it as the
// manager would.
func (l *loop) report(now time.Time) {
	l.reportAt = time.Time{}
	decision := report.Decide(now, l.plan, l.ledger, l.states)
	if !decision.Next.IsZero() {
		sooner(&l.reportAt, decision.Next)
	}
	if !decision.Write {
		return
	}
	events := l.ledger.Events(l.plan, decision.Status)
	l.ledger = l.ledger.Wrote(now, decision.Status)
	for _, e := range events {
		if p := l.byUID[types.UID(e.Pod.UID)]; p != nil {
			l.tell(p.event(now, e.Probe.ContainerName, corev1.EventTypeNormal, e.Reason(), e.Text()))
		}
	}
	npp := &v1alpha1.NodePodProbe{Status: l.ledger.Status()}
	for _, p := range l.pods {
		l.mark(now, p, npp)
	}
}

// mark gives a pod the marks that the report calls for. An ending pod keeps those it has.
func (l *loop) mark(now time.Time, p *pod, npp *v1alpha1.NodePodProbe) {
	if plan.Ending(p.object) {
		return
	}
	probes := plan.Pod(p.object, l.markers, plan.KubernetesDefaults()).Probes
	desired := mark.Desired(probes, mark.ReportOf(npp, p.object.UID), p.owned)
	if desired.Equal(p.owned) {
		return
	}
	before := p.object.DeepCopy()
	put(p.object, p.owned, desired)
	p.owned, p.dirty = desired, true
	l.tellKeys(now, p, KindLabel, before.Labels, p.object.Labels)
	l.tellKeys(now, p, KindAnnotation, before.Annotations, p.object.Annotations)
	l.tellConditions(now, p, before.Status.Conditions)
	if !maps.Equal(before.Labels, p.object.Labels) {
		sooner(&l.replanAt, now.Add(replanDelay))
	}
}

// put does to the pod what a forced apply of the desired marks does in a cluster: it sets
// them, whoever has set the keys before, and takes off what was owned and is not among
// them.
func put(pod *corev1.Pod, owned, desired mark.Marks) {
	pod.Labels = putAll(pod.Labels, owned.Labels, desired.Labels)
	pod.Annotations = putAll(pod.Annotations, owned.Annotations, desired.Annotations)
	conditions := slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		_, was := owned.Conditions[string(c.Type)]
		_, is := desired.Conditions[string(c.Type)]
		return was && !is
	})
	for _, name := range slices.Sorted(maps.Keys(desired.Conditions)) {
		c := desired.Conditions[name]
		condition := corev1.PodCondition{
			Type: corev1.PodConditionType(c.Type), Status: c.Status, Message: c.Message,
			LastProbeTime: c.LastProbeTime, LastTransitionTime: c.LastTransitionTime,
		}
		i := slices.IndexFunc(conditions, func(other corev1.PodCondition) bool { return other.Type == condition.Type })
		if i < 0 {
			conditions = append(conditions, condition)
			continue
		}
		conditions[i] = condition
	}
	pod.Status.Conditions = conditions
}

func putAll(on, owned, desired map[string]string) map[string]string {
	out := maps.Clone(on)
	if out == nil {
		out = map[string]string{}
	}
	for key := range owned {
		delete(out, key)
	}
	maps.Copy(out, desired)
	return out
}
