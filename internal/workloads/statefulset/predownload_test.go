// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
)

// TestPreDownload checks on which nodes the images of an update in place are pulled.
func TestPreDownload(t *testing.T) {
	inPlace := func(set *appsv1beta1.StatefulSet) {
		rolling(set).PodUpdatePolicy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	}
	for name, tc := range map[string]struct {
		change func(*appsv1beta1.StatefulSet)
		want   []string
	}{
		"in place": {inPlace, []string{"node-2", "node-1", "node-0"}},
		"after updated pods": {func(set *appsv1beta1.StatefulSet) {
			inPlace(set)
			rolling(set).InPlaceUpdateStrategy = &pub.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: new(intstr.FromInt32(1))}
		}, nil},
		"partition": {func(set *appsv1beta1.StatefulSet) {
			inPlace(set)
			rolling(set).Partition = new(int32(2))
		}, []string{"node-2"}},
		"recreated": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, tc.change).pods(t, "0", "1", "2")
			f.in.PreDownload = true
			for i, pod := range f.in.Pods {
				pod.Spec.NodeName = []string{"node-0", "node-1", "node-2"}[i]
			}
			out := f.plan(t)
			var nodes []string
			if len(out.CreatePulls) > 0 {
				nodes = out.CreatePulls[0].Spec.Selector.Names
			}
			if !slices.Equal(nodes, tc.want) {
				t.Errorf("images are pulled on %v, want %v", nodes, tc.want)
			}
		})
	}
}
