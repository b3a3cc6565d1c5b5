// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package affected_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestNodeUpdates(t *testing.T) {
	node := func(kind string) *metav1.PartialObjectMetadata {
		n := gather.NewNode()
		n.Labels = map[string]string{v1alpha1.NodeTypeLabel: kind}
		return n
	}
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"same kind":       {before: "a", after: "b"},
		"becomes virtual": {after: "virtual-kubelet", want: true},
		"gets a kubelet":  {before: "virtual-kubelet", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := false
			events := affected.NodeEvents(nil, func(context.Context, controllers.Queue, *metav1.PartialObjectMetadata) { got = true })
			events.Update(t.Context(), event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: node(tc.before), ObjectNew: node(tc.after)}, nil)
			expect.Equal(t, "called", tc.want, got)
		})
	}
}

func TestNothingIsFoundAfterAnError(t *testing.T) {
	var none []string
	if got := affected.LogError(none, errors.New("broken client"))(t.Context()); got != nil {
		t.Errorf("found %v, want none", got)
	}
}
