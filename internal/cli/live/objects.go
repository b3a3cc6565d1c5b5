// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// objects are the objects that rows depend on, and which rows may have changed.
type objects struct {
	signal  *Signal
	options podview.Options
	pods    *Collection[*corev1.Pod]
	markers *Collection[*v1alpha1.PodProbeMarker]
	nodes   *Collection[*metav1.PartialObjectMetadata]
	plans   *Collection[*v1alpha1.NodePodProbe]
	slices  *Collection[*seamarkv1alpha1.ProbePlan]
	reports *Collection[*seamarkv1alpha1.ProbeReport]
	guards  *Collection[*policyv1.PodDisruptionBudget]
	// missing are the resources that cannot be read.
	missing []permission.Missing
	stale   probestatus.Changes
}

func newObjects(query cluster.Query) *objects {
	o := &objects{signal: NewSignal(), options: cluster.ViewOptions(), stale: probestatus.NewChanges()}
	pods, plans := podview.NewPodTrimmer(o.options), podview.NewPlanTrimmer()
	wanted := func(pod *corev1.Pod) bool { return len(query.Names) == 0 || slices.Contains(query.Names, pod.Name) }
	o.pods = NewCollection(o.signal, wanted, pods.Trim, o.touch)
	o.markers = NewCollection(o.signal, All, func(m *v1alpha1.PodProbeMarker) *v1alpha1.PodProbeMarker { return m }, o.touch)
	o.nodes = NewCollection(o.signal, All, podview.TrimNode, o.touch)
	o.plans = NewCollection(o.signal, All, func(npp *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
		return plans.Trim(planOf(npp, query.Namespace))
	}, o.touch)
	o.slices = NewCollection(o.signal, All, func(slice *seamarkv1alpha1.ProbePlan) *seamarkv1alpha1.ProbePlan {
		return plans.TrimSlice(sliceOf(slice, query.Namespace))
	}, o.touch)
	o.reports = NewCollection(o.signal, All, func(report *seamarkv1alpha1.ProbeReport) *seamarkv1alpha1.ProbeReport {
		return podview.TrimReport(reportOf(report, query.Namespace))
	}, o.touch)
	o.guards = NewCollection(o.signal, All, func(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		trimmed := guard.Trim(budget)
		// Its status changes with its pods, and does not matter.
		trimmed.ResourceVersion = strconv.FormatInt(trimmed.Generation, 10)
		return trimmed
	}, o.touch)
	return o
}

// recheck records that the rows of the pods may have changed although no object has.
func (o *objects) recheck(pods []types.NamespacedName) {
	o.signal.Lock()
	defer o.signal.Unlock()
	for _, pod := range pods {
		o.touch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	}
}

// touch records that an object has changed. It requires the lock.
func (o *objects) touch(object any) {
	o.stale.Add(object)
	o.signal.Touch(object)
}

// planOf returns the plan with only the pods of the namespace, or all of them if it is empty.
func planOf(npp *v1alpha1.NodePodProbe, namespace string) *v1alpha1.NodePodProbe {
	if namespace == "" {
		return npp
	}
	only := *npp
	only.Spec.PodProbes = inNamespace(npp.Spec.PodProbes, namespace)
	only.Status.PodProbeStatuses = filter(npp.Status.PodProbeStatuses, func(s *v1alpha1.PodProbeStatus) bool { return s.Namespace == namespace })
	return &only
}

// sliceOf returns the ProbePlan with only the pods of the namespace, or all of them if it is empty.
func sliceOf(slice *seamarkv1alpha1.ProbePlan, namespace string) *seamarkv1alpha1.ProbePlan {
	if namespace == "" {
		return slice
	}
	only := *slice
	only.Pods = inNamespace(slice.Pods, namespace)
	return &only
}

func inNamespace(pods []v1alpha1.PodProbe, namespace string) []v1alpha1.PodProbe {
	return filter(pods, func(p *v1alpha1.PodProbe) bool { return p.Namespace == namespace })
}

// reportOf returns the report with only the pods of the namespace, or all of them if it is empty.
func reportOf(report *seamarkv1alpha1.ProbeReport, namespace string) *seamarkv1alpha1.ProbeReport {
	if namespace == "" {
		return report
	}
	only := *report
	only.Pods = filter(report.Pods, func(p *seamarkv1alpha1.PodReport) bool { return p.Namespace == namespace })
	return &only
}

func filter[T any](all []T, keep func(*T) bool) []T {
	var kept []T
	for i := range all {
		if keep(&all[i]) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// lacks records a resource that cannot be read.
func (o *objects) lacks(m permission.Missing) error {
	o.signal.Lock()
	defer o.signal.Unlock()
	o.missing = append(o.missing, m)
	return nil
}

// take returns the stale pods with what their rows depend on, and the stale pods that no longer
// exist. Nothing is stale then. With all, it returns all pods, and leaves what is stale.
func (o *objects) take(all bool) (snapshot *cluster.Snapshot, gone []types.NamespacedName) {
	o.signal.Lock()
	defer o.signal.Unlock()
	snapshot = &cluster.Snapshot{Input: probestatus.NewInput(o.options)}
	snapshot.Now = time.Now()
	snapshot.SetMissing(o.missing)
	nodes := map[string]bool{}
	for _, pod := range o.pods.Items {
		if all || o.stale.Affects(pod) {
			snapshot.Pods = append(snapshot.Pods, pod)
			nodes[pod.Spec.NodeName] = true
		}
	}
	for _, m := range o.markers.Items {
		snapshot.Markers = append(snapshot.Markers, m)
	}
	for _, budget := range o.guards.Items {
		snapshot.Budgets = append(snapshot.Budgets, budget)
	}
	for name := range nodes {
		if node, found := o.nodes.Items[types.NamespacedName{Name: name}]; found {
			snapshot.Nodes[name] = node
		}
		if npp, found := o.plans.Items[types.NamespacedName{Name: name}]; found {
			snapshot.Plans[name] = npp
		}
	}
	slices := map[string][]*seamarkv1alpha1.ProbePlan{}
	for _, slice := range o.slices.Items {
		if nodes[slice.NodeName] {
			slices[slice.NodeName] = append(slices[slice.NodeName], slice)
		}
	}
	snapshot.Assemble(slices)
	for _, report := range o.reports.Items {
		if nodes[report.NodeName] {
			snapshot.Reports[report.NodeName] = append(snapshot.Reports[report.NodeName], report)
		}
	}
	if all {
		return snapshot, nil
	}
	for key := range o.stale.Pods {
		if _, found := o.pods.Items[key]; !found {
			gone = append(gone, key)
		}
	}
	o.stale = probestatus.NewChanges()
	return snapshot, gone
}
