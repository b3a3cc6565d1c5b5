// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
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
	expect.Equal(t, "lines", want, got)
}
