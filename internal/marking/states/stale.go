// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// Stale are the pods whose rows must be computed again after objects have changed. An object that has
// moved must be noted as it was and as it is.
type Stale struct {
	// Pods are single pods.
	Pods sets.Set[types.NamespacedName]
	// Namespaces and Nodes are those all of whose pods are stale.
	Namespaces, Nodes sets.Set[string]
}

// NewStale returns an empty Stale.
func NewStale() Stale {
	return Stale{Pods: sets.New[types.NamespacedName](), Namespaces: sets.New[string](), Nodes: sets.New[string]()}
}

// Note records that an object of an Input has changed. It ignores any other object.
func (s Stale) Note(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		s.Pods.Insert(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	case *v1alpha1.PodProbeMarker:
		s.Namespaces.Insert(o.Namespace)
	case *metav1.PartialObjectMetadata:
		s.Nodes.Insert(o.Name)
	case *v1alpha1.NodePodProbe:
		s.Nodes.Insert(o.Name)
	case *seamarkv1alpha1.ProbeReport:
		s.Nodes.Insert(o.NodeName)
	}
}

// Has reports whether the pod is stale.
func (s Stale) Has(pod *corev1.Pod) bool {
	return s.Namespaces.Has(pod.Namespace) || s.Nodes.Has(pod.Spec.NodeName) ||
		s.Pods.Has(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}
