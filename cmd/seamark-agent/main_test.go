// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"strings"
	"testing"
)

func TestBadFlags(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	cases := map[string]struct {
		args []string
		want []string
	}{
		"no node name":           {nil, []string{"--node-name", "NODE_NAME"}},
		"a node name that isn't": {[]string{"--node-name=Node 1"}, []string{"--node-name=\"Node 1\"", "lower case"}},
		"no place for an exec":   {[]string{"--node-name=n", "--exec-concurrency=0"}, []string{"--exec-concurrency=0", "1 to 1024"}},
		"too quiet":              {[]string{"--node-name=n", "-v=-1"}, []string{"--v=-1", "0 to 10"}},
		"no such kubeconfig":     {[]string{"--node-name=n", "--kubeconfig=/nowhere"}, []string{"--kubeconfig=\"/nowhere\"", "no such file"}},
		"an address that is taken": {
			[]string{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=" + taken.Addr().String()},
			[]string{"metrics.bindAddress \"" + taken.Addr().String(), "want a free address and port"},
		},
		"an address that is none": {
			[]string{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=here"},
			[]string{"--metrics-bind-address=\"here\"", "host:port, :port or 0"},
		},
		"profiles for everybody": {
			[]string{"--node-name=n", "--pprof-bind-address=:6060"},
			[]string{"--pprof-bind-address=\":6060\"", "loopback"},
		},
		"no such file":   {[]string{"--node-name=n", "--config=/nowhere"}, []string{"--config=\"/nowhere\"", "no such file"}},
		"a log in prose": {[]string{"--node-name=n", "--logging-format=prose"}, []string{"--logging-format=\"prose\"", "\"text\", \"json\""}},
		"an endpoint that is none": {
			[]string{"--node-name=n", "--kubeconfig=testdata/kubeconfig", "--metrics-bind-address=0", "--cri-endpoint=tcp://x"},
			[]string{"--cri-endpoint", "tcp://x", "unix:///path"},
		},
		"an argument": {[]string{"now"}, []string{"now"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NODE_NAME", "")
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
