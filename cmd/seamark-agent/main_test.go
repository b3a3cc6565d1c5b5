// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/command/commandtest"
)

func TestInvalidFlags(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = used.Close() })
	t.Setenv("NODE_NAME", "")
	commandtest.Reject(t, newCommand, map[string]commandtest.Case{
		"no node name":              {nil, {"--node-name", "NODE_NAME"}},
		"invalid node name":         {{"--node-name=Node 1"}, {"--node-name=\"Node 1\"", "lower case"}},
		"exec concurrency 0":        {{"--node-name=n", "--exec-concurrency=0"}, {"--exec-concurrency=0", "between 1 and 1024"}},
		"negative verbosity":        {{"--node-name=n", "-v=-1"}, {"--v=-1", "between 0 and 10"}},
		"missing kubeconfig":        {{"--node-name=n", "--kubeconfig=/nowhere"}, {"--kubeconfig=\"/nowhere\"", "no such file"}},
		"missing file":              {{"--node-name=n", "--config=/nowhere"}, {"--config=\"/nowhere\"", "no such file"}},
		"unknown log format":        {{"--node-name=n", "--logging-format=prose"}, {"--logging-format=\"prose\"", "\"text\", \"json\""}},
		"positional argument":       {{"now"}, {"now"}},
		"profiles on all addresses": {{"--node-name=n", "--pprof-bind-address=:6060"}, {"--pprof-bind-address=\":6060\"", "loopback"}},
		"address in use": {
			{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=" + used.Addr().String()},
			{"metrics.bindAddress \"" + used.Addr().String(), "must be a free address and port"},
		},
		"invalid address": {
			{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=here"},
			{"--metrics-bind-address=\"here\"", "host:port, :port or 0"},
		},
		"invalid endpoint": {
			{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=0", "--cri-endpoint=tcp://x"},
			{"--cri-endpoint", "tcp://x", "unix:///path"},
		},
	})
}
