// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"testing"

	"github.com/seamark-dev/seamark/internal/probe"
)

type proberFunc func() (probe.Outcome, error)

func (f proberFunc) Probe(context.Context, probe.Target) (probe.Outcome, error) { return f() }

func TestNetworkProbeOfEndedContainerHasNoResult(t *testing.T) {
	for name, test := range map[string]struct {
		ends bool
		err  error
		want string
	}{
		"running container":                {},
		"container ends during the probe":  {ends: true, want: "container c ended"},
		"probe error of a running process": {err: errors.New("cancelled"), want: "cancelled"},
		"probe error of an ended one":      {ends: true, err: errors.New("cancelled"), want: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			running := true
			prober := networkProber{
				Prober: proberFunc(func() (probe.Outcome, error) {
					running = !test.ends
					return probe.Outcome{Success: true}, test.err
				}),
				runs: func(id string) bool { return running && id == "c" },
			}
			outcome, err := prober.Probe(t.Context(), probe.Target{ContainerID: "c"})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want || outcome.Success != (test.want == "" || test.err != nil) {
				t.Errorf("got %+v and error %q, want error %q", outcome, got, test.want)
			}
		})
	}
}
