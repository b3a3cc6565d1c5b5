// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestMarkProblems(t *testing.T) {
	limited := MarkProblem{Limited: LimitLoop}
	refused := func(reason string) MarkProblem { return MarkProblem{Refused: map[string]string{"p": reason}} }
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	markers := &Inbox{}
	if err := markers.Source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	m := NewMarkProblems(markers)
	name := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	steps := []struct {
		name     string
		pod      string
		problems map[string]MarkProblem
		changed  []string
	}{
		{"no problem", "a", nil, nil},
		{"two markers", "a", map[string]MarkProblem{"web": limited, "api": refused("long")}, []string{"api", "web"}},
		{"unchanged", "a", map[string]MarkProblem{"web": limited, "api": refused("long")}, nil},
		{"second pod", "b", map[string]MarkProblem{"web": limited}, []string{"web"}},
		{"other reason, one less", "a", map[string]MarkProblem{"api": refused("bad")}, []string{"api", "web"}},
		{"gone", "b", nil, []string{"web"}},
		{"last", "a", nil, []string{"api"}},
	}
	for _, step := range steps {
		m.Set(name(step.pod), step.problems)
		var changed []string
		for q.Len() > 0 {
			request, _ := q.Get()
			changed = append(changed, request.Name)
			q.Done(request)
		}
		slices.SortFunc(changed, strings.Compare)
		if diff := cmp.Diff(step.changed, changed); diff != "" {
			t.Errorf("%s: changed markers (-want +got):\n%s", step.name, diff)
		}
		for marker, want := range step.problems {
			if diff := cmp.Diff(want, m.Of(name(marker))[step.pod]); diff != "" {
				t.Errorf("%s: problem of %s (-want +got):\n%s", step.name, marker, diff)
			}
		}
	}
	if len(m.pods.by)+len(m.pods.markers) > 0 {
		t.Errorf("problems remain: %v, %v", m.pods.by, m.pods.markers)
	}
}
