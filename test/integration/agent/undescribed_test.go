// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
)

// TestUndescribedContainer restarts the agent while the runtime cannot describe one container:
// its probe keeps its state, and other probes run.
func TestUndescribedContainer(t *testing.T) {
	for name, events := range map[string]critest.Events{"streamed": critest.Streamed, "shared": critest.Shared} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shared, events)
			broken := w.run("broken")
			w.run("fine")
			w.setAnswer("yes", answer{stdout: "good"})
			w.plan(w.pod("broken", "yes"), w.pod("fine", "yes"))
			stop := w.startAgent()
			w.reported("broken yes", succeeded, "good")
			w.reported("fine yes", succeeded, "good")
			stop()

			w.runtime.OnCall(func(_ context.Context, _ string, request any) error {
				if r, ok := request.(*runtimeapi.ContainerStatusRequest); ok && r.GetContainerId() == broken {
					return status.Error(codes.Internal, "broken container")
				}
				return nil
			})
			w.setAnswer("yes", answer{stdout: "bad", code: 1})
			w.startAgent()
			w.reported("fine yes", failed, "bad")
			if got := w.states()["broken yes"]; got.State != succeeded {
				t.Errorf("the state of the undescribed container is %s, want %s", got.State, succeeded)
			}
			w.runtime.OnCall(nil)
			w.reported("broken yes", failed, "bad")
		})
	}
}
