// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/builders"
)

func TestPodUpdates(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	cases := map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"no relevant change": {before: pod().Build(), after: pod().Annotation("a", "b").Build()},
		"other label":        {before: pod().Build(), after: pod().Label("team", "a").Build()},
		"starts to match":    {before: pod().Label("app", "db").Build(), after: pod().Build(), want: true},
		"stops matching":     {before: pod().Build(), after: pod().Label("app", "db").Build(), want: true},
		"ends":               {before: pod().Build(), after: pod().Terminating().Build(), want: true},
		"other pod":          {before: pod().Build(), after: pod().UID("2").Container("db").Build(), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newWorld(t)
			f.addMarkers(stored(builders.Marker("ns", "web").Probe(label("p", "web"))))
			f.addPods(tc.before)
			if got := f.update(tc.after); got != tc.want {
				t.Errorf("enqueued the namespace: %t, want %t", got, tc.want)
			}
		})
	}
}
