// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// pods returns the pods of the namespace that are stale, or all of them, and the keys of those that do
// not exist any more. Without a namespace, it returns those of all namespaces.
func (s *Source) pods(stale probestate.Stale, all bool, namespace string) (pods []*corev1.Pod, missing []string, err error) {
	indexer := s.informers.Pods.GetIndexer()
	if all {
		pods, err = inNamespace[*corev1.Pod](indexer, namespace)
		return pods, nil, err
	}
	found := map[types.NamespacedName]*corev1.Pod{}
	add := func(pods []*corev1.Pod, err error) error {
		for _, pod := range pods {
			if namespace == "" || pod.Namespace == namespace {
				found[client.ObjectKeyFromObject(pod)] = pod
			}
		}
		return err
	}
	for of := range stale.Namespaces {
		if err := add(inNamespace[*corev1.Pod](indexer, of)); err != nil {
			return nil, nil, err
		}
	}
	for node := range stale.Nodes {
		if err := add(byIndex[*corev1.Pod](indexer, gather.PodNodeIndex, gather.NodeKey(node))); err != nil {
			return nil, nil, err
		}
	}
	for key := range stale.Pods {
		object, exists, err := indexer.GetByKey(key.String())
		pod, isPod := object.(*corev1.Pod)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("get pod %s: %w", key, err)
		case exists && isPod:
			found[key] = pod
		default:
			missing = append(missing, key.String())
		}
	}
	for _, pod := range found {
		pods = append(pods, pod)
	}
	return pods, missing, nil
}

// rows returns the pods that have probes, and their states. full is whether plans and reports are read.
func (s *Source) rows(pods []*corev1.Pod, full bool) ([]model.Pod, probestate.States, error) {
	in := probestate.Input{
		Options: s.options, Pods: pods, Now: s.now(), NodesUnread: true, PlansUnread: true, ReportsUnread: true,
		Nodes: map[string]*metav1.PartialObjectMetadata{}, Plans: map[string]*v1alpha1.NodePodProbe{},
		Reports: map[string][]*seamarkv1alpha1.ProbeReport{},
	}
	namespaces, nodes := sets.Set[string]{}, sets.Set[string]{}
	for _, pod := range pods {
		namespaces.Insert(pod.Namespace)
		nodes.Insert(pod.Spec.NodeName)
	}
	for namespace := range namespaces {
		markers, err := inNamespace[*v1alpha1.PodProbeMarker](s.informers.Markers.GetIndexer(), namespace)
		if err != nil {
			return nil, probestate.States{}, err
		}
		in.Markers = append(in.Markers, markers...)
	}
	if full && s.informers.Nodes != nil && s.informers.Plans != nil && s.informers.Reports != nil {
		in.NodesUnread, in.PlansUnread, in.ReportsUnread = false, false, false
		for node := range nodes {
			if err := s.readNode(node, &in); err != nil {
				return nil, probestate.States{}, err
			}
		}
	}
	states := probestate.Of(in)
	return model.PodsOf(pods, states.Rows), states, nil
}

// readNode adds the node, its plan and its reports to the input.
func (s *Source) readNode(name string, in *probestate.Input) error {
	if name == "" {
		return nil
	}
	object, _, err := s.informers.Nodes.GetIndexer().GetByKey(name)
	if err != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	if node, ok := object.(*metav1.PartialObjectMetadata); ok {
		in.Nodes[name] = node
	}
	object, _, err = s.informers.Plans.GetIndexer().GetByKey(name)
	if err != nil {
		return fmt.Errorf("get NodePodProbe %s: %w", name, err)
	}
	if npp, ok := object.(*v1alpha1.NodePodProbe); ok {
		in.Plans[name] = npp
	}
	in.Reports[name], err = byIndex[*seamarkv1alpha1.ProbeReport](s.informers.Reports.GetIndexer(), gather.SliceNodeIndex, gather.NodeKey(name))
	return err
}

// markers returns the markers of the namespace, or of all namespaces if it is empty.
func (s *Source) markers(namespace string) ([]model.Marker, error) {
	objects, err := inNamespace[*v1alpha1.PodProbeMarker](s.informers.Markers.GetIndexer(), namespace)
	if err != nil {
		return nil, err
	}
	return MarkersOf(objects), nil
}

// MarkersOf returns the markers without counts.
func MarkersOf(objects []*v1alpha1.PodProbeMarker) []model.Marker {
	invalid := probestate.Of(probestate.Input{Markers: objects}).Invalid
	markers := make([]model.Marker, 0, len(objects))
	for _, m := range objects {
		markers = append(markers, model.MarkerOf(m, invalid[client.ObjectKeyFromObject(m)]))
	}
	return markers
}

// without returns the keys of the pods that have no probes.
func without(pods []*corev1.Pod, probed []model.Pod) []string {
	keys := sets.Set[string]{}
	for i := range probed {
		keys.Insert(probed[i].Key)
	}
	var rest []string
	for _, pod := range pods {
		if key := client.ObjectKeyFromObject(pod).String(); !keys.Has(key) {
			rest = append(rest, key)
		}
	}
	return rest
}

// inNamespace returns the objects of the namespace, or all if it is empty.
func inNamespace[T any](indexer toolscache.Indexer, namespace string) ([]T, error) {
	if namespace == "" {
		return typed[T](indexer.List()), nil
	}
	return byIndex[T](indexer, toolscache.NamespaceIndex, namespace)
}

func byIndex[T any](indexer toolscache.Indexer, index, value string) ([]T, error) {
	objects, err := indexer.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("look up %s in index %s: %w", value, index, err)
	}
	return typed[T](objects), nil
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
