// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestInitializedMarkersAreAccepted creates the markers that `seamark init` writes.
func TestInitializedMarkersAreAccepted(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"exec":   {"--exec", "cat /tmp/job", "-l", "app=worker", "--label", "busy"},
		"script": {"--exec", `[ ! -e "$DIR/closed" ] && echo "it's open: yes"`, "-l", "app in (a,b),!old", "--name", "shop", "--container", "shop", "--label", "open=yes,no"},
		"http": {"--http", "/primary:http", "-l", "app=database", "--label", "role=primary,secondary",
			"--annotation", "controller.kubernetes.io/pod-deletion-cost=10,-10", "--condition", "example.com/primary"},
		"tcp":  {"--tcp", "6379", "-l", "app=cache", "--condition", "example.com/open", "--initial-delay", "1m", "--period", "5m", "--timeout", "5m"},
		"grpc": {"--grpc", "9090/intake", "-l", "app=queue", "--annotation", "note=12:30, \n#x", "--success-threshold", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			command := cli.New(streams, "seamark", "test")
			command.SetArgs(append([]string{"init"}, args...))
			if err := command.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v: %s", err, errOut)
			}
			objects, err := env.ParseManifests(out.Bytes())
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, error %v in\n%s", len(objects), err, out)
			}
			objects[0].SetNamespace(server.Namespace(t))
			if err := create(t.Context(), objects[0]); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
