// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func TestChangesOfPlansAreLogged(t *testing.T) {
	pod := func(name, uid, ip string) v1alpha1.PodProbe {
		return v1alpha1.PodProbe{Namespace: "games", Name: name, UID: uid, IP: ip, Probes: make([]v1alpha1.ContainerProbe, 2)}
	}
	var got []string
	lines := funcr.New(func(_, line string) { got = append(got, line) }, funcr.Options{Verbosity: 10})
	logChanges(logr.NewContext(t.Context(), lines),
		[]v1alpha1.PodProbe{pod("a", "1", ""), pod("b", "2", ""), pod("c", "3", ""), pod("e", "5", "")},
		[]v1alpha1.PodProbe{pod("a", "1", "10.0.0.1"), pod("c", "3", ""), pod("d", "4", ""), pod("e", "6", "")})
	want := []string{
		`"level"=1 "msg"="Unplanned pod" "pod"="games/b" "podUID"="2"`,
		`"level"=1 "msg"="Unplanned pod" "pod"="games/e" "podUID"="5"`,
		`"level"=1 "msg"="Planned pod" "pod"="games/a" "podUID"="1" "probes"=2`,
		`"level"=1 "msg"="Planned pod" "pod"="games/d" "podUID"="4" "probes"=2`,
		`"level"=1 "msg"="Planned pod" "pod"="games/e" "podUID"="6" "probes"=2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
