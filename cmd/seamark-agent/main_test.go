// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/command/commandtest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestInvalidFlags(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { _ = used.Close() })
	t.Setenv("NODE_NAME", "")
	commandtest.Reject(t, newCommand, map[string]commandtest.Case{
		"no node name":        {nil, {"--node-name", "NODE_NAME"}},
		"missing kubeconfig":  {{"--node-name=n", "--kubeconfig=/nowhere"}, {"--kubeconfig=\"/nowhere\"", "no such file"}},
		"positional argument": {{"now"}, {"now"}},
		"address in use": {
			{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=" + used.Addr().String()},
			{"metrics.bindAddress \"" + used.Addr().String(), "must be a free address and port"},
		},
	})
}
