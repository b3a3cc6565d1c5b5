// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// markerNamed returns a marker to delete or patch, by its name.
func (w *world) markerNamed(marker string) *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: marker}}
}
