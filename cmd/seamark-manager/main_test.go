// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/program/command/commandtest"
)

func TestInvalidFlags(t *testing.T) {
	commandtest.Reject(t, newCommand, map[string]commandtest.Case{
		"metrics address without port": {{"--metrics-bind-address=here"}, {`--metrics-bind-address="here"`, "host:port, :port or 0"}},
		"invalid port":                 {{"--metrics-bind-address=:65536"}, {`--metrics-bind-address=":65536"`, "host:port, :port or 0"}},
		"health address without port":  {{"--health-probe-bind-address=8081"}, {`--health-probe-bind-address="8081"`, "host:port, :port or 0"}},
		"invalid namespace":            {{"--leader-election-namespace=My NS"}, {`--leader-election-namespace="My NS"`, "lower case"}},
		"verbosity too high":           {{"-v=11"}, {"--v=11", "between 0 and 10"}},
		"invalid boolean":              {{"--leader-elect=perhaps"}, {"--leader-elect", "perhaps"}},
		"profiles on all addresses":    {{"--pprof-bind-address=0.0.0.0:6060"}, {`--pprof-bind-address="0.0.0.0:6060"`, "loopback"}},
		"unknown gate":                 {{"--feature-gates=Everything=true"}, {`unknown feature gate "Everything"`, "PodProbeMarkerGate"}},
		"missing file":                 {{"--config=/nowhere"}, {`--config="/nowhere"`, "no such file"}},
		"missing kubeconfig":           {{"--kubeconfig=/nowhere"}, {`--kubeconfig="/nowhere"`, "no such file"}},
		"positional argument":          {{"now"}, {"now"}},
	})
}
