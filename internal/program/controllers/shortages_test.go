// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

func TestShortages(t *testing.T) {
	short := func(marker string, pods int) plan.Shortage {
		return plan.Shortage{Namespace: "ns", ID: probeid.ID{Marker: marker, Probe: "p"}, Pods: pods, Example: "a"}
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	s := controller.NewShortages()
	if err := s.Source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		node      string
		shortages []plan.Shortage
		enqueued  string
		counts    map[types.NamespacedName]int
	}{
		{node: "a", shortages: []plan.Shortage{short("x", 2), short("y", 1)}, enqueued: "x y", counts: counts(2, 1)},
		{node: "b", shortages: []plan.Shortage{short("x", 3)}, enqueued: "x", counts: counts(5, 1)},
		{node: "b", shortages: []plan.Shortage{short("x", 3)}, counts: counts(5, 1)},
		{node: "a", shortages: []plan.Shortage{short("x", 2)}, enqueued: "y", counts: counts(5, 0)},
		{node: "b", enqueued: "x", counts: counts(2, 0)},
		{node: "b", counts: counts(2, 0)},
		{node: "a", enqueued: "x", counts: counts(0, 0)},
	}
	for i, step := range steps {
		s.Set(step.node, step.shortages)
		var enqueued []string
		for q.Len() > 0 {
			request, _ := q.Get()
			enqueued = append(enqueued, request.Name)
			q.Done(request)
		}
		slices.Sort(enqueued)
		if got := strings.Join(enqueued, " "); got != step.enqueued {
			t.Errorf("step %d enqueues %q, want %q", i, got, step.enqueued)
		}
		if diff := cmp.Diff(step.counts, s.Counts()); diff != "" {
			t.Errorf("step %d: counts (-want +got):\n%s", i, diff)
		}
	}
}

// counts has the counts of the markers x and y that are not zero.
func counts(x, y int) map[types.NamespacedName]int {
	all := map[types.NamespacedName]int{}
	if x > 0 {
		all[types.NamespacedName{Namespace: "ns", Name: "x"}] = x
	}
	if y > 0 {
		all[types.NamespacedName{Namespace: "ns", Name: "y"}] = y
	}
	return all
}
