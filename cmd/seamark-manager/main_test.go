// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

func TestBadFlags(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []string
	}{
		"metrics without a port":     {[]string{"--metrics-bind-address=here"}, []string{`--metrics-bind-address="here"`, "host:port, :port or 0"}},
		"a port that is none":        {[]string{"--metrics-bind-address=:65536"}, []string{`--metrics-bind-address=":65536"`, "host:port, :port or 0"}},
		"health without a port":      {[]string{"--health-probe-bind-address=8081"}, []string{`--health-probe-bind-address="8081"`, "host:port, :port or 0"}},
		"a namespace that isn't":     {[]string{"--leader-election-namespace=My NS"}, []string{`--leader-election-namespace="My NS"`, "lower case"}},
		"too loud":                   {[]string{"-v=11"}, []string{"--v=11", "0 to 10"}},
		"a switch that is no switch": {[]string{"--leader-elect=perhaps"}, []string{"--leader-elect", "perhaps"}},
		"profiles for everybody":     {[]string{"--pprof-bind-address=0.0.0.0:6060"}, []string{`--pprof-bind-address="0.0.0.0:6060"`, "loopback"}},
		"an unknown gate":            {[]string{"--feature-gates=Everything=true"}, []string{`unknown gate "Everything"`, "PodProbeMarkerGate"}},
		"no such file":               {[]string{"--config=/nowhere"}, []string{`--config="/nowhere"`, "no such file"}},
		"no such kubeconfig":         {[]string{"--kubeconfig=/nowhere"}, []string{`--kubeconfig="/nowhere"`, "no such file"}},
		"an argument":                {[]string{"now"}, []string{"now"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			command.SetArgs(tc.args)
			err := command.ExecuteContext(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}
