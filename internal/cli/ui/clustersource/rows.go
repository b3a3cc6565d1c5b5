// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// pods returns the pods of the namespace that are stale, or all of them. Without a namespace, it returns
// those of all namespaces.
func (s *Source) pods(stale probestatus.Changes, all bool, namespace string) []*corev1.Pod {
	pods := inNamespace[*corev1.Pod](s.informers.Pods.GetIndexer(), namespace)
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !all && !stale.Affects(pod) })
}

// input returns what the rows of the pods depend on. full is whether plans and reports are read.
func (s *Source) input(pods []*corev1.Pod, full bool) probestatus.Input {
	full = full && s.informers.Nodes != nil
	in := probestatus.NewInput(s.options)
	in.Pods, in.Now, in.NodesUnread, in.PlansUnread, in.ReportsUnread = pods, s.now(), !full, !full, !full
	namespaces, nodes := sets.Set[string]{}, sets.Set[string]{}
	for _, pod := range pods {
		namespaces.Insert(pod.Namespace)
		nodes.Insert(pod.Spec.NodeName)
	}
	for namespace := range namespaces {
		in.Markers = append(in.Markers, inNamespace[*v1alpha1.PodProbeMarker](s.informers.Markers.GetIndexer(), namespace)...)
		if s.informers.Guards != nil {
			in.Budgets = append(in.Budgets, inNamespace[*policyv1.PodDisruptionBudget](s.informers.Guards.GetIndexer(), namespace)...)
		}
	}
	if !full {
		return in
	}
	for name := range nodes.Delete("") {
		if node := get[*metav1.PartialObjectMetadata](s.informers.Nodes.GetIndexer(), name); node != nil {
			in.Nodes[name] = node
		}
		if npp := get[*v1alpha1.NodePodProbe](s.informers.Plans.GetIndexer(), name); npp != nil {
			in.Plans[name] = slicing.Assemble(npp, s.planSlices(name))
		}
		in.Reports[name] = byIndex[*seamarkv1alpha1.ProbeReport](s.informers.Reports.GetIndexer(), gather.SliceNodeIndex, gather.NodeKey(name))
	}
	return in
}

// planSlices returns the ProbePlans of the node.
func (s *Source) planSlices(node string) []*seamarkv1alpha1.ProbePlan {
	if s.informers.PlanSlices == nil {
		return nil
	}
	return byIndex[*seamarkv1alpha1.ProbePlan](s.informers.PlanSlices.GetIndexer(), gather.SliceNodeIndex, gather.NodeKey(node))
}

// markers returns the markers of the namespace, or of all namespaces if it is empty, without counts.
func (s *Source) markers(namespace string) []model.Marker {
	objects := inNamespace[*v1alpha1.PodProbeMarker](s.informers.Markers.GetIndexer(), namespace)
	invalid := probestatus.List(probestatus.Input{Markers: objects}).Invalid
	markers := make([]model.Marker, 0, len(objects))
	for _, m := range objects {
		markers = append(markers, model.MarkerOf(m, invalid[client.ObjectKeyFromObject(m)]))
	}
	return markers
}

// get returns the object with the key, or nil.
func get[T any](indexer toolscache.Indexer, key string) T {
	// A store in memory does not fail.
	object, _, _ := indexer.GetByKey(key)
	typed, _ := object.(T)
	return typed
}

// inNamespace returns the objects of the namespace, or all if it is empty.
func inNamespace[T any](indexer toolscache.Indexer, namespace string) []T {
	if namespace == "" {
		return typed[T](indexer.List())
	}
	return byIndex[T](indexer, toolscache.NamespaceIndex, namespace)
}

func byIndex[T any](indexer toolscache.Indexer, index, value string) []T {
	// It fails only without the index, which New checks.
	objects, _ := indexer.ByIndex(index, value)
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	found := make([]T, 0, len(objects))
	for _, object := range objects {
		if t, ok := object.(T); ok {
			found = append(found, t)
		}
	}
	return found
}
