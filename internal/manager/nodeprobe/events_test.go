// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestPodUpdates(t *testing.T) {
	pod := func(uid, node string) *builders.PodBuilder {
		return builders.Pod("ns", "a").UID(uid).Label("app", "game").Node(node)
	}
	cases := map[string]struct {
		before, after *corev1.Pod
		want          []string
	}{
		"no relevant change":         {before: pod("1", "x").Build(), after: pod("1", "x").Build()},
		"pod ends":                   {before: pod("1", "x").Build(), after: pod("1", "x").Terminating().Build(), want: []string{"x"}},
		"pod is initialized":         {before: pod("1", "x").Initialized("False").Build(), after: pod("1", "x").Build(), want: []string{"x"}},
		"recreated on the same node": {before: pod("1", "x").Build(), after: pod("2", "x").Build(), want: []string{"x"}},
		"recreated on another node":  {before: pod("1", "x").Build(), after: pod("2", "y").Build(), want: []string{"x", "y"}},
		"recreated, not bound":       {before: pod("1", "x").Build(), after: pod("2", "").Build(), want: []string{"x"}},
		"recreated after its end":    {before: pod("1", "x").Terminating().Build(), after: pod("2", "").Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{}, nil, nil)
			q := fakeapi.Queue(t)
			r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: tc.before, ObjectNew: tc.after}, q)
			var got []string
			r.bursts.Expire(func(node string, _ burst) bool {
				got = append(got, node)
				return true
			})
			slices.Sort(got)
			expect.Equal(t, "touched nodes", tc.want, got)
		})
	}
}
