// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/expect"
)

// startedAt returns the start time of containers.
func startedAt() time.Time { return time.Unix(1700000000, 0) }

// recorder records the callbacks of a running tracker.
type recorder struct {
	t       *testing.T
	calls   chan string
	tracker *Tracker
}

// track runs a tracker until the test ends, with short intervals.
func track(t *testing.T, runtime *critest.Runtime, wanted func() bool, edit func(*timing)) recorder {
	t.Helper()
	r := recorder{t: t, calls: make(chan string, 1000)}
	tracker := NewTracker(dial(t, runtime.Socket(), nil), wanted, Callbacks{
		OnChange:  func(c Instance) { r.calls <- describe(c) },
		OnGone:    func(c identity.ContainerKey) { r.calls <- fmt.Sprintf("%s/%s gone", c.PodUID, c.Name) },
		OnUnknown: func(c identity.ContainerKey) { r.calls <- fmt.Sprintf("%s/%s unknown", c.PodUID, c.Name) },
		OnSynced:  func() { r.calls <- "synced" },
		OnStale:   func() { r.calls <- "stale" },
	}, testr.New(t))
	r.tracker = tracker
	tracker.timing.poll = 10 * time.Millisecond
	tracker.timing.retry, tracker.timing.retryMax = 10*time.Millisecond, 50*time.Millisecond
	tracker.timing.redescribe, tracker.timing.redescribeMax = 10*time.Millisecond, 50*time.Millisecond
	tracker.timing.patience = patience
	if edit != nil {
		edit(&tracker.timing)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { tracker.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

func describe(c Instance) string {
	state := "not running: " + c.Reason
	if c.Running {
		state = "running since " + fmt.Sprint(c.StartedAt.Unix())
	}
	return fmt.Sprintf("%s/%s %s %s", c.PodUID, c.Name, c.ID, state)
}

// expect waits for the next callbacks.
func (r recorder) expect(want ...string) {
	r.t.Helper()
	var got []string
	for range want {
		select {
		case call := <-r.calls:
			got = append(got, call)
		case <-time.After(patience):
			r.t.Fatalf("callbacks are only %q, want %q", got, want)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("callbacks (-want +got):\n%s", diff)
	}
}

// reach waits for a callback. It skips those that the container is unknown, which is right if the
// runtime did not describe it in time.
func (r recorder) reach(container, state string) {
	r.t.Helper()
	for {
		select {
		case call := <-r.calls:
			switch call {
			case container + " " + state:
				return
			case container + " unknown":
			default:
				r.t.Fatalf("callback %q, want %q", call, container+" "+state)
			}
		case <-time.After(patience):
			r.t.Fatalf("no callback %q", container+" "+state)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	expect.NoErrorf(t, err, "%s", what)
}

// awaitStream waits until the tracker has opened the event stream.
func awaitStream(t *testing.T, runtime *critest.Runtime) {
	t.Helper()
	eventually(t, "no stream of events", func() bool { return runtime.Streams() == 1 })
}

func always() bool { return true }
func never() bool  { return false }

func eventSupport() map[string]critest.Events {
	return map[string]critest.Events{
		"streamed": critest.Streamed, "unimplemented": critest.Unimplemented, "ended": critest.Ended, "shared": critest.Shared,
	}
}

func TestTrackerReportsLifecycle(t *testing.T) {
	for name, events := range eventSupport() {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, events)
			c1 := runtime.Create(web(), 0)
			runtime.Run(c1, startedAt())
			r := track(t, runtime, always, nil)
			r.expect("u1/web c1 running since 1700000000", "synced")
			if events == critest.Streamed {
				awaitStream(t, runtime)
			}
			runtime.Exit(c1, 1, "Error")
			r.expect("u1/web c1 not running: exited with code 1")
			c2 := runtime.Create(web(), 1)
			runtime.Run(c2, startedAt().Add(time.Second))
			r.expect("u1/web c2 running since 1700000001")
			runtime.Remove(c1)
			other := runtime.Create(identity.ContainerKey{PodUID: "u2", Name: "web"}, 0)
			runtime.Run(other, startedAt())
			r.expect("u2/web c3 running since 1700000000")
			runtime.Exit(c2, 137, "OOMKilled")
			r.expect("u1/web c2 not running: exited with code 137 (OOMKilled)")
			runtime.Remove(c2)
			r.expect("u1/web gone")
		})
	}
}

func TestTrackerReportsNewestInstanceOfFirstList(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	for attempt := range uint32(3) {
		id := runtime.Create(web(), attempt)
		runtime.Run(id, startedAt())
		if attempt < 2 {
			runtime.Exit(id, 1, "Error")
		}
	}
	runtime.Create(web(), 3)
	track(t, runtime, always, nil).expect("u1/web c3 running since 1700000000", "synced")
	awaitStream(t, runtime)
	want := map[string]int{"Version": 2, "GetContainerEvents": 1, "ListContainers": 1, "ContainerStatus": 1}
	expect.Equal(t, "calls", want, runtime.Calls())
}

// Events contain the statuses, so that the tracker makes no further calls.
func TestTrackerMakesNoCallsForEvents(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	r := track(t, runtime, never, nil)
	r.expect("synced")
	awaitStream(t, runtime)
	before := runtime.Calls()
	for i := range 20 {
		id := runtime.Create(web(), uint32(i))
		runtime.Run(id, startedAt())
		runtime.Exit(id, 0, "Completed")
		r.expect(fmt.Sprintf("u1/web %s running since 1700000000", id), fmt.Sprintf("u1/web %s not running: exited with code 0", id))
	}
	expect.Equal(t, "calls", before, runtime.Calls())
}

// Without a stream, the tracker lists containers only while they are wanted, and reports when they are known again: a
// container may have restarted meanwhile.
func TestTrackerListsOnlyWhileWanted(t *testing.T) {
	runtime := critest.New(t, critest.Unimplemented)
	first := runtime.Create(web(), 0)
	runtime.Run(first, startedAt())
	wanted := make(chan bool)
	r := track(t, runtime, func() bool { return <-wanted }, nil)
	t.Cleanup(func() { close(wanted) })
	before := "u1/web " + first + " running since 1700000000"
	r.expect(before, "synced")
	for range 3 {
		wanted <- false
	}
	r.expect("stale")
	runtime.Exit(first, 0, "")
	second := runtime.Create(web(), 1)
	runtime.Run(second, startedAt().Add(time.Minute))
	expect.Equal(t, "lists while none were wanted", 1, runtime.Calls()["ListContainers"])
	for range 3 {
		wanted <- true
	}
	r.expect("u1/web "+second+" running since 1700000060", "synced")
	// The next call of wanted shows that the previous list is complete.
	wanted <- false
	expect.Equal(t, "lists after three ticks", 4, runtime.Calls()["ListContainers"])
}

// While the runtime is stopped, nothing is reported. After its restart, the changes since then
// are reported.
func TestTrackerSurvivesRestartOfRuntime(t *testing.T) {
	for name, events := range eventSupport() {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, events)
			var ids []string
			for _, pod := range []string{"u1", "u2", "u3", "u4"} {
				id := runtime.Create(identity.ContainerKey{PodUID: web().PodUID, Name: pod}, 0)
				runtime.Run(id, startedAt())
				ids = append(ids, id)
			}
			r := track(t, runtime, always, nil)
			for range ids {
				<-r.calls
			}
			r.expect("synced")
			for range 2 {
				runtime.Stop()
				runtime.Start()
			}
			runtime.Stop()
			runtime.Exit(ids[1], 2, "Error")
			runtime.Start()
			r.expect("u1/u2 c2 not running: exited with code 2")
			runtime.Stop()
			runtime.Remove(ids[2])
			runtime.Start()
			r.expect("u1/u3 gone")
			if events == critest.Streamed {
				eventually(t, "no event stream", func() bool { return runtime.Streams() == 1 })
			}
			runtime.Exit(ids[3], 3, "Error")
			r.expect("u1/u4 c4 not running: exited with code 3")
		})
	}
}

// A resync finds changes whose events were lost.
func TestTrackerResyncFindsLostEvents(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	r := track(t, runtime, never, func(t *timing) { t.resync = 20 * time.Millisecond })
	r.expect("u1/web c1 running since 1700000000", "synced")
	runtime.Silence(true)
	runtime.Exit(c1, 1, "Error")
	r.expect("u1/web c1 not running: exited with code 1")
	runtime.Remove(c1)
	r.expect("u1/web gone")
}

// The tracker reopens a stream that ended at once.
func TestTrackerReopensStream(t *testing.T) {
	runtime := critest.New(t, critest.Ended)
	r := track(t, runtime, never, func(t *timing) { t.reopen = 10 * time.Millisecond })
	r.expect("synced")
	eventually(t, "stream is not reopened", func() bool { return runtime.Calls()["GetContainerEvents"] >= 3 })
}

// The tracker handles events that are late, incomplete or contradictory.
func TestTrackerHandlesUnusualEvents(t *testing.T) {
	const started, stopped = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	ran := func(id string) *runtimeapi.ContainerStatus {
		return statusOf(running, func(s *runtimeapi.ContainerStatus) {
			s.Id, s.CreatedAt, s.StartedAt = id, time.Now().UnixNano(), startedAt().UnixNano()
		})
	}
	runtime := critest.New(t, critest.Streamed)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	r := track(t, runtime, never, nil)
	r.expect("u1/web c1 running since 1700000000", "synced")
	awaitStream(t, runtime)
	runtime.Silence(true)

	// An event without statuses, from before the clock was set forward: the tracker requests the status.
	runtime.Exit(c1, 1, "Error")
	runtime.Send(&runtimeapi.ContainerEventResponse{ContainerId: c1, ContainerEventType: stopped, CreatedAt: 1})
	r.expect("u1/web c1 not running: exited with code 1")
	// A late event: the container has already ended.
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: c1, ContainerEventType: started, ContainersStatuses: []*runtimeapi.ContainerStatus{ran(c1)},
	})
	// Events of a sandbox and of a container that no longer exists.
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: "s1", ContainerEventType: started, PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "s1"},
	})
	runtime.Send(&runtimeapi.ContainerEventResponse{ContainerId: "c9", ContainerEventType: started})
	// A stop event with statuses from before the stop: the tracker requests the status.
	c2 := runtime.Create(web(), 1)
	runtime.Run(c2, startedAt())
	runtime.Exit(c2, 2, "Error")
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: c2, ContainerEventType: stopped, ContainersStatuses: []*runtimeapi.ContainerStatus{ran(c2)},
	})
	r.expect("u1/web c2 running since 1700000000", "u1/web c2 not running: exited with code 2")
}

// The tracker ignores containers that the kubelet did not create, and keeps the known state of
// a container whose state is unknown to the runtime.
func TestTrackerIgnoresForeignContainersAndUnknownState(t *testing.T) {
	runtime := critest.New(t, critest.Unimplemented)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	foreign := runtime.Create(identity.ContainerKey{}, 0)
	runtime.Run(foreign, startedAt())
	r := track(t, runtime, always, nil)
	r.expect("u1/web c1 running since 1700000000", "synced")
	runtime.Edit(c1, func(s *runtimeapi.ContainerStatus) { s.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
	lists := runtime.Calls()["ListContainers"]
	eventually(t, "no further lists", func() bool { return runtime.Calls()["ListContainers"] > lists+2 })
	runtime.Exit(c1, 1, "Error")
	r.expect("u1/web c1 not running: exited with code 1")
}
