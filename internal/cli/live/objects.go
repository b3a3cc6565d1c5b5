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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	*Signal
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
	o := &objects{Signal: NewSignal(), options: cluster.ViewOptions(), stale: probestatus.NewChanges()}
	plans := podview.NewPlanTrimmer()
	wanted := func(pod *corev1.Pod) bool { return len(query.Names) == 0 || slices.Contains(query.Names, pod.Name) }
	o.pods = NewCollection(o, wanted, query.PodTrimmer().Trim, o.touch)
	o.markers = NewCollection(o, All, func(m *v1alpha1.PodProbeMarker) *v1alpha1.PodProbeMarker { return m }, o.touch)
	o.nodes = NewCollection(o, All, podview.TrimNode, o.touch)
	o.plans = NewCollection(o, All, func(npp *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
		return plans.Trim(planOf(npp, query.Namespace))
	}, o.touch)
	o.slices = NewCollection(o, All, func(slice *seamarkv1alpha1.ProbePlan) *seamarkv1alpha1.ProbePlan {
		return plans.TrimSlice(sliceOf(slice, query.Namespace))
	}, o.touch)
	o.reports = NewCollection(o, All, func(report *seamarkv1alpha1.ProbeReport) *seamarkv1alpha1.ProbeReport {
		return podview.TrimReport(reportOf(report, query.Namespace))
	}, o.touch)
	o.guards = NewCollection(o, All, func(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		trimmed := guard.Trim(budget)
		// Its status changes with its pods, and does not matter.
		trimmed.ResourceVersion = strconv.FormatInt(trimmed.Generation, 10)
		return trimmed
	}, o.touch)
	return o
}

// recheck records that the rows of the pods may have changed although no object has.
func (o *objects) recheck(pods []types.NamespacedName) {
	o.Lock()
	defer o.Unlock()
	for _, pod := range pods {
		o.touch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	}
}

// touch records that an object has changed. It requires the lock.
func (o *objects) touch(object any) {
	o.stale.Add(object)
	o.Touch(object)
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

// Lacks records a resource that cannot be read.
func (o *objects) Lacks(m permission.Missing) error {
	o.Lock()
	defer o.Unlock()
	o.missing = append(o.missing, m)
	return nil
}

// Stale is the part of a watch that may have changed.
type Stale struct {
	// Snapshot has the pods that may have changed, and what their rows depend on.
	Snapshot *cluster.Snapshot
	// Pods are the names of these pods, and of those that no longer exist.
	Pods []types.NamespacedName
	// Markers is whether markers may have changed. Then the snapshot has all of them.
	Markers bool
}

// take returns what is stale. Nothing is stale then. With all, it returns the snapshot of all pods, and leaves what
// is stale.
func (o *objects) take(all bool) Stale {
	o.Lock()
	defer o.Unlock()
	snapshot := &cluster.Snapshot{Input: probestatus.NewInput(o.options)}
	snapshot.Now = time.Now()
	snapshot.SetMissing(o.missing)
	whole := all || o.stale.Namespaces.Len() > 0
	nodes, namespaces := map[string]bool{}, map[string]bool{}
	for _, pod := range o.pods.Items {
		if all || o.stale.Affects(pod) {
			snapshot.Pods = append(snapshot.Pods, pod)
			nodes[pod.Spec.NodeName], namespaces[pod.Namespace] = true, true
		}
	}
	for key, m := range o.markers.Items {
		if whole || namespaces[key.Namespace] {
			snapshot.Markers = append(snapshot.Markers, m)
		}
	}
	for key, budget := range o.guards.Items {
		if whole || namespaces[key.Namespace] {
			snapshot.Budgets = append(snapshot.Budgets, budget)
		}
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
		return Stale{Snapshot: snapshot}
	}
	for _, pod := range snapshot.Pods {
		o.stale.Pods.Insert(client.ObjectKeyFromObject(pod))
	}
	stale := Stale{Snapshot: snapshot, Pods: o.stale.Pods.UnsortedList(), Markers: whole}
	o.stale = probestatus.NewChanges()
	return stale
}
