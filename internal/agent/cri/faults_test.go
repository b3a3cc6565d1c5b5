// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/expect"
)

// Other subscribers of containerd 1.7 neither take events from the tracker nor lose any to it.
func TestTrackerSharesNoStream(t *testing.T) {
	runtime := critest.New(t, critest.Shared)
	subscribe := func(ctx context.Context) <-chan string {
		stream, err := dial(t, runtime.Socket(), nil).events(ctx)
		expect.NoError(t, err)
		received := make(chan string, 1000)
		go func() {
			for {
				event, err := stream.Recv()
				if err != nil {
					return
				}
				received <- event.GetContainerId() + " " + event.GetContainerEventType().String()
			}
		}()
		return received
	}
	kubelet := subscribe(t.Context())
	awaitStream(t, runtime)
	r := track(t, runtime, always, nil)
	r.expect("synced")
	for i := range 10 {
		id := runtime.Create(web(), uint32(i))
		runtime.Run(id, startedAt())
		r.expect(fmt.Sprintf("u1/web %s running since 1700000000", id))
		runtime.Exit(id, 1, "Error")
		r.expect(fmt.Sprintf("u1/web %s not running: exited with code 1", id))
		for _, kind := range []string{"CREATED", "STARTED", "STOPPED"} {
			select {
			case got := <-kubelet:
				if want := id + " CONTAINER_" + kind + "_EVENT"; got != want {
					t.Fatalf("the other subscriber received %q, want %q", got, want)
				}
			case <-time.After(patience):
				t.Fatalf("the other subscriber has lost the %s event of %s", kind, id)
			}
		}
	}
}

// The tracker follows a replacement of the runtime in both directions.
func TestTrackerFollowsReplacedRuntime(t *testing.T) {
	runtime := critest.New(t, critest.Shared)
	r := track(t, runtime, always, func(t *timing) { t.reopen = 20 * time.Millisecond })
	r.expect("synced")
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	r.expect("u1/web c1 running since 1700000000")
	expect.Equal(t, "streams opened on containerd 1.7", 0, runtime.Calls()["GetContainerEvents"])

	// The connection survives a short restart if no call was made during it.
	runtime.Replace(critest.Streamed)
	awaitStream(t, runtime)
	runtime.Exit(c1, 1, "Error")
	r.expect("u1/web c1 not running: exited with code 1")

	runtime.Stop()
	runtime.Replace(critest.Shared)
	runtime.Start()
	c2 := runtime.Create(web(), 1)
	runtime.Run(c2, startedAt())
	r.expect("u1/web c2 running since 1700000000")
	expect.Equal(t, "open streams on containerd 1.7", 0, runtime.Streams())
}

// statusFault returns a fault of the status requests for one container.
func statusFault(id string, fault func(ctx context.Context) error) critest.FaultFunc {
	return func(ctx context.Context, method string, request any) error {
		r, ok := request.(*runtimeapi.ContainerStatusRequest)
		if method != "ContainerStatus" || !ok || r.GetContainerId() != id {
			return nil
		}
		return fault(ctx)
	}
}

// A container that the runtime cannot describe affects only itself.
func TestTrackerIsolatesUndescribedContainer(t *testing.T) {
	fail := func(code codes.Code) func(context.Context) error {
		return func(context.Context) error { return status.Error(code, "broken container") }
	}
	faults := map[string]func(context.Context) error{
		"internal error": fail(codes.Internal),
		"unavailable":    fail(codes.Unavailable),
		"not found":      fail(codes.NotFound),
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	for mode, events := range eventSupport() {
		for name, fault := range faults {
			t.Run(mode+"/"+name, func(t *testing.T) {
				runtime := critest.New(t, events)
				broken := runtime.Create(web(), 0)
				runtime.Run(broken, startedAt())
				runtime.OnCall(statusFault(broken, fault))
				r := track(t, runtime, always, func(t *timing) { t.patience, t.resync = 50*time.Millisecond, 20*time.Millisecond })
				r.expect("u1/web unknown", "synced")
				expect.Equal(t, "containers are undescribed", 1, r.tracker.Undescribed())

				api := runtime.Create(identity.ContainerKey{PodUID: "u2", Name: "api"}, 0)
				runtime.Run(api, startedAt())
				r.reach("u2/api", "c2 running since 1700000000")
				runtime.Exit(api, 3, "Error")
				r.reach("u2/api", "c2 not running: exited with code 3")

				runtime.OnCall(nil)
				if name == "hangs" {
					// The runtime hangs until it is restarted.
					runtime.Stop()
					runtime.Start()
				}
				r.expect("u1/web c1 running since 1700000000")
				eventually(t, "container is still undescribed", func() bool { return r.tracker.Undescribed() == 0 })
			})
		}
	}
}

// An unknown container is reported when its instance is replaced or removed.
func TestTrackerSettlesUndescribedContainer(t *testing.T) {
	for mode, events := range eventSupport() {
		t.Run(mode, func(t *testing.T) {
			runtime := critest.New(t, events)
			c1 := runtime.Create(web(), 0)
			runtime.Run(c1, startedAt())
			r := track(t, runtime, always, func(t *timing) { t.resync = 20 * time.Millisecond })
			r.expect("u1/web c1 running since 1700000000", "synced")
			runtime.Silence(true)
			runtime.Exit(c1, 1, "Error")
			r.expect("u1/web c1 not running: exited with code 1")

			runtime.OnCall(statusFault("c2", func(context.Context) error { return status.Error(codes.Internal, "broken") }))
			c2 := runtime.Create(web(), 1)
			runtime.Run(c2, startedAt())
			r.expect("u1/web unknown")
			runtime.Remove(c2)
			r.expect("u1/web c1 not running: exited with code 1")

			runtime.OnCall(statusFault("c3", func(context.Context) error { return status.Error(codes.Internal, "broken") }))
			runtime.Run(runtime.Create(web(), 2), startedAt())
			r.expect("u1/web unknown")
			c4 := runtime.Create(web(), 3)
			runtime.Run(c4, startedAt())
			r.expect("u1/web c4 running since 1700000000")

			runtime.OnCall(statusFault("c5", func(context.Context) error { return status.Error(codes.Internal, "broken") }))
			c5 := runtime.Create(identity.ContainerKey{PodUID: "u2", Name: "api"}, 0)
			runtime.Run(c5, startedAt())
			r.expect("u2/api unknown")
			runtime.Remove(c5)
			r.expect("u2/api gone")
			eventually(t, "container is still undescribed", func() bool { return r.tracker.Undescribed() == 0 })
		})
	}
}

// A container whose state is unknown to the runtime from the start is unknown, not gone.
func TestTrackerReportsUnknownStateAtStart(t *testing.T) {
	runtime := critest.New(t, critest.Unimplemented)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	runtime.Edit(c1, func(s *runtimeapi.ContainerStatus) { s.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
	r := track(t, runtime, always, nil)
	r.expect("u1/web unknown", "synced")
	runtime.Exit(c1, 1, "Error")
	r.expect("u1/web c1 not running: exited with code 1")
}

// The tracker reaches the state of the runtime after calls have failed, hung and been slow,
// and streams have broken and stalled.
func TestTrackerConvergesAfterFaults(t *testing.T) {
	for mode, events := range eventSupport() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", mode, seed), func(t *testing.T) {
				runtime := critest.New(t, events)
				r := track(t, runtime, always, func(t *timing) {
					t.resync, t.reopen, t.steady, t.patience = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
				})
				seen := map[string]string{}
				view := func() map[string]string {
					for {
						select {
						case call := <-r.calls:
							var container, rest string
							if _, err := fmt.Sscanf(call, "%s %s", &container, &rest); err == nil {
								seen[container] = call[len(container)+1:]
							}
						default:
							return seen
						}
					}
				}
				want := disturb(runtime, rand.New(rand.NewPCG(seed, 1)))
				eventually(t, "the tracker does not have the runtime's state", func() bool {
					got := view()
					for container, state := range want {
						// A container that was never seen is not reported as gone.
						if got[container] != state && (state != "gone" || got[container] != "") {
							return false
						}
					}
					return true
				})
			})
		}
	}
}

// disturb changes containers while calls and streams fail, and returns the final state of each
// container.
func disturb(runtime *critest.Runtime, random *rand.Rand) map[string]string {
	runtime.OnCall(func(ctx context.Context, method string, _ any) error {
		switch n := rand.IntN(10); { // From many goroutines: not reproducible anyway.
		case method == "Version":
			return nil
		case n == 0:
			return status.Error(codes.Internal, "fault")
		case n == 1:
			return status.Error(codes.Unavailable, "fault")
		case n == 2 && method == "ListContainers":
			<-time.After(30 * time.Millisecond)
		case n == 2 && method == "ContainerStatus":
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		return nil
	})
	want, ids := map[string]string{}, map[string]string{}
	for i := range 120 {
		c := identity.ContainerKey{PodUID: "u1", Name: fmt.Sprintf("c%d", random.IntN(6))}
		name := "u1/" + c.Name
		switch id, exists := ids[name]; random.IntN(5) {
		case 0, 1:
			if exists {
				runtime.Remove(id)
			}
			ids[name] = runtime.Create(c, uint32(i))
			runtime.Run(ids[name], startedAt())
			want[name] = ids[name] + " running since 1700000000"
		case 2:
			if exists {
				runtime.Exit(id, 1, "Error")
				want[name] = id + " not running: exited with code 1"
			}
		case 3:
			if exists {
				runtime.Remove(id)
				delete(ids, name)
				want[name] = "gone"
			}
		default:
			runtime.Silence(random.IntN(3) == 0)
			if random.IntN(5) == 0 {
				runtime.Break()
			}
		}
		<-time.After(2 * time.Millisecond)
	}
	runtime.Silence(false)
	runtime.OnCall(nil)
	return want
}
