// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func TestChanges(t *testing.T) {
	pod := func(name, uid, ip string, probes int) v1alpha1.PodProbe {
		return v1alpha1.PodProbe{Namespace: "games", Name: name, UID: uid, IP: ip, Probes: make([]v1alpha1.ContainerProbe, probes)}
	}
	cases := map[string]struct {
		before, after []v1alpha1.PodProbe
		want          []planChange
	}{
		"no plans": {},
		"first plan": {
			after: []v1alpha1.PodProbe{pod("a", "1", "", 1), pod("b", "2", "", 2)},
			want:  []planChange{{pod: "games/a", uid: "1", probes: 1}, {pod: "games/b", uid: "2", probes: 2}},
		},
		"added, removed, changed and unchanged pods": {
			before: []v1alpha1.PodProbe{pod("a", "1", "", 1), pod("b", "2", "", 2), pod("c", "3", "", 1)},
			after:  []v1alpha1.PodProbe{pod("a", "1", "10.0.0.1", 1), pod("c", "3", "", 1), pod("d", "4", "", 1)},
			want: []planChange{
				{pod: "games/b", uid: "2"},
				{pod: "games/a", uid: "1", probes: 1},
				{pod: "games/d", uid: "4", probes: 1},
			},
		},
		"recreated pod": {
			before: []v1alpha1.PodProbe{pod("a", "1", "", 1)},
			after:  []v1alpha1.PodProbe{pod("a", "2", "", 1)},
			want:   []planChange{{pod: "games/a", uid: "1"}, {pod: "games/a", uid: "2", probes: 1}},
		},
		"no pods left": {
			before: []v1alpha1.PodProbe{pod("a", "1", "", 1)},
			want:   []planChange{{pod: "games/a", uid: "1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := changes(tc.before, tc.after)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(planChange{})); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
