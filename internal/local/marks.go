// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
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
	mark.Replace(p.object, p.owned, desired)
	p.owned, p.dirty = desired, true
	l.tellKeys(now, p, KindLabel, before.Labels, p.object.Labels)
	l.tellKeys(now, p, KindAnnotation, before.Annotations, p.object.Annotations)
	l.tellConditions(now, p, before.Status.Conditions)
	if !maps.Equal(before.Labels, p.object.Labels) {
		sooner(&l.replanAt, now.Add(replanDelay))
	}
}
