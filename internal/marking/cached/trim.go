// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// Transform returns a transform of a cache that trims the objects of one type. It passes all
// others unchanged, such as the tombstones of deleted objects.
func Transform[T any](trim func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return trim(typed), nil
		}
		return object, nil
	}
}

// TrimNode returns the metadata of a node with only what views are built from: its identity
// and its kind.
func TrimNode(node *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	trimmed := &metav1.PartialObjectMetadata{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			UID:             node.UID,
			ResourceVersion: node.ResourceVersion,
		},
	}
	for _, label := range serverless.AgentlessLabels() {
		if value, found := node.Labels[label.Key]; found {
			metav1.SetMetaDataLabel(&trimmed.ObjectMeta, label.Key, value)
		}
	}
	return trimmed
}

// TrimVirtualNode returns a node with only what decides whether a pod may run on it.
func TrimVirtualNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			UID:             node.UID,
			ResourceVersion: node.ResourceVersion,
			Labels:          node.Labels,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints},
	}
}
