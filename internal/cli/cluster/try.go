// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// listKind returns the kind of a list of the resource.
func listKind(resource permission.Resource) metav1.TypeMeta {
	switch resource {
	case permission.Nodes:
		return metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NodeList"}
	case permission.Markers:
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "PodProbeMarkerList"}
	case permission.Plans:
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "NodePodProbeList"}
	case permission.Reports:
		return metav1.TypeMeta{APIVersion: seamarkv1alpha1.GroupVersion().String(), Kind: "ProbeReportList"}
	default:
		return metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "PodList"}
	}
}

// Try lists one object of each resource in the namespace, or in all if it is empty. The snapshot
// that it returns has no objects, only what is missing.
func Try(ctx context.Context, reader client.Reader, namespace string, resources ...permission.Resource) (*Snapshot, error) {
	var m missing
	group, groupContext := errgroup.WithContext(ctx)
	for _, resource := range resources {
		group.Go(func() error {
			list := &metav1.PartialObjectMetadataList{TypeMeta: listKind(resource)}
			err := reader.List(groupContext, list, client.InNamespace(namespace), client.Limit(1))
			return m.note(err, "list", resource, namespace)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := &Snapshot{}
	s.SetMissing(m.found)
	return s, nil
}
