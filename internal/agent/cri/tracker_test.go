// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// startedAt is when containers in these tests start.
func startedAt() time.Time { return time.Unix(1700000000, 0) }

// follower is a running tracker and what it has told.
type follower struct {
	t    *testing.T
	told chan string
}

// follow runs a tracker until the test ends, with short times.
func follow(t *testing.T, runtime *critest.Runtime, wanted func() bool, edit func(*timing)) follower {
	t.Helper()
	f := follower{t: t, told: make(chan string, 1000)}
	tracker := NewTracker(dial(t, runtime.Socket(), nil), wanted, Callbacks{
		OnChange: func(c Container) { f.told <- words(c) },
		OnGone:   func(c probeid.Container) { f.told <- fmt.Sprintf("%s/%s gone", c.PodUID, c.Name) },
		OnSynced: func() { f.told <- "synced" },
	}, testr.New(t))
	tracker.timing.poll = 10 * time.Millisecond
	tracker.timing.retry, tracker.timing.retryMax = 10*time.Millisecond, 50*time.Millisecond
	if edit != nil {
		edit(&tracker.timing)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

// words says what a container is.
func words(c Container) string {
	state := "not running: " + c.Reason
	if c.Running {
		state = "running since " + fmt.Sprint(c.StartedAt.Unix())
	}
	return fmt.Sprintf("%s/%s %s %s", c.PodUID, c.Name, c.ID, state)
}

// expect waits for what the tracker tells next.
func (f follower) expect(want ...string) {
	f.t.Helper()
	var got []string
	for range want {
		select {
		case said := <-f.told:
			got = append(got, said)
		case <-time.After(patience):
			f.t.Fatalf("told %q and nothing more, want %q", got, want)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Fatalf("told (-want +got):\n%s", diff)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// subscribed waits until the tracker listens to events.
func subscribed(t *testing.T, runtime *critest.Runtime) {
	t.Helper()
	eventually(t, "no stream of events", func() bool { return runtime.Streams() == 1 })
}

func always() bool { return true }
func never() bool  { return false }

func kinds() map[string]critest.Events {
	return map[string]critest.Events{"streamed": critest.Streamed, "unimplemented": critest.Unimplemented, "ended": critest.Ended}
}

// TestTrackerTellsALife follows a container through its life, on each kind of runtime.
func TestTrackerTellsALife(t *testing.T) {
	for name, events := range kinds() {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, events)
			c1 := runtime.Create(web(), 0)
			runtime.Run(c1, startedAt())
			f := follow(t, runtime, always, nil)
			f.expect("u1/web c1 running since 1700000000", "synced")
			if events == critest.Streamed {
				subscribed(t, runtime)
			}
			runtime.Exit(c1, 1, "Error")
			f.expect("u1/web c1 not running: exited with code 1")
			c2 := runtime.Create(web(), 1)
			runtime.Run(c2, startedAt().Add(time.Second))
			f.expect("u1/web c2 running since 1700000001")
			runtime.Remove(c1)
			other := runtime.Create(probeid.Container{PodUID: "u2", Name: "web"}, 0)
			runtime.Run(other, startedAt())
			f.expect("u2/web c3 running since 1700000000")
			runtime.Exit(c2, 137, "OOMKilled")
			f.expect("u1/web c2 not running: exited with code 137 (OOMKilled)")
			runtime.Remove(c2)
			f.expect("u1/web gone")
		})
	}
}

// TestTrackerStartsFromTheNewest has a container with several starts at the first list.
func TestTrackerStartsFromTheNewest(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	for attempt := range uint32(3) {
		id := runtime.Create(web(), attempt)
		runtime.Run(id, startedAt())
		if attempt < 2 {
			runtime.Exit(id, 1, "Error")
		}
	}
	runtime.Create(web(), 3)
	follow(t, runtime, always, nil).expect("u1/web c3 running since 1700000000", "synced")
	want := map[string]int{"Version": 1, "GetContainerEvents": 1, "ListContainers": 1, "ContainerStatus": 1}
	if diff := cmp.Diff(want, runtime.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestTrackerMakesNoCallsForEvents counts the calls that a stream saves.
func TestTrackerMakesNoCallsForEvents(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	f := follow(t, runtime, never, nil)
	f.expect("synced")
	subscribed(t, runtime)
	before := runtime.Calls()
	for i := range 20 {
		id := runtime.Create(web(), uint32(i))
		runtime.Run(id, startedAt())
		runtime.Exit(id, 0, "Completed")
		f.expect(fmt.Sprintf("u1/web %s running since 1700000000", id), fmt.Sprintf("u1/web %s not running: exited with code 0", id))
	}
	if diff := cmp.Diff(before, runtime.Calls()); diff != "" {
		t.Errorf("calls (-before +after):\n%s", diff)
	}
}

// TestTrackerListsOnlyWhileWanted counts the lists of a tracker without a stream.
func TestTrackerListsOnlyWhileWanted(t *testing.T) {
	runtime := critest.New(t, critest.Unimplemented)
	asked := make(chan bool)
	f := follow(t, runtime, func() bool { return <-asked }, nil)
	t.Cleanup(func() { close(asked) })
	f.expect("synced")
	for range 3 {
		asked <- false
	}
	if got := runtime.Calls()["ListContainers"]; got != 1 {
		t.Errorf("%d lists while nothing was wanted, want the first alone", got)
	}
	for range 3 {
		asked <- true
	}
	// That it asks once more says that the lists before it are done.
	asked <- false
	if got := runtime.Calls()["ListContainers"]; got != 4 {
		t.Errorf("%d lists after three ticks, want 4", got)
	}
}

// TestTrackerSurvivesTheRuntime stops the runtime: nothing is told until it is back, and
// then what has changed in between.
func TestTrackerSurvivesTheRuntime(t *testing.T) {
	for name, events := range kinds() {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, events)
			var ids []string
			for _, pod := range []string{"u1", "u2", "u3", "u4"} {
				id := runtime.Create(probeid.Container{PodUID: web().PodUID, Name: pod}, 0)
				runtime.Run(id, startedAt())
				ids = append(ids, id)
			}
			f := follow(t, runtime, always, nil)
			for range ids {
				<-f.told
			}
			f.expect("synced")
			for range 2 {
				runtime.Stop()
				runtime.Start()
			}
			runtime.Stop()
			runtime.Exit(ids[1], 2, "Error")
			runtime.Start()
			f.expect("u1/u2 c2 not running: exited with code 2")
			runtime.Stop()
			runtime.Remove(ids[2])
			runtime.Start()
			f.expect("u1/u3 gone")
			if events == critest.Streamed {
				eventually(t, "no list after the stream", func() bool { return runtime.Streams() == 1 })
			}
			runtime.Exit(ids[3], 3, "Error")
			f.expect("u1/u4 c4 not running: exited with code 3")
		})
	}
}

// TestTrackerFindsMissedEvents has a runtime that loses events.
func TestTrackerFindsMissedEvents(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	f := follow(t, runtime, never, func(t *timing) { t.resync = 20 * time.Millisecond })
	f.expect("u1/web c1 running since 1700000000", "synced")
	runtime.Silence(true)
	runtime.Exit(c1, 1, "Error")
	f.expect("u1/web c1 not running: exited with code 1")
	runtime.Remove(c1)
	f.expect("u1/web gone")
}

// TestTrackerOpensTheStreamAgain has a runtime whose streams end at once.
func TestTrackerOpensTheStreamAgain(t *testing.T) {
	runtime := critest.New(t, critest.Ended)
	f := follow(t, runtime, never, func(t *timing) { t.reopen = 10 * time.Millisecond })
	f.expect("synced")
	eventually(t, "the stream is not opened again", func() bool { return runtime.Calls()["GetContainerEvents"] >= 3 })
}

// TestTrackerOfOddEvents sends events that are late, bare, or contradict themselves.
func TestTrackerOfOddEvents(t *testing.T) {
	const started, stopped = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	ran := func(id string) *runtimeapi.ContainerStatus {
		return statusOf(running, func(s *runtimeapi.ContainerStatus) {
			s.Id, s.CreatedAt, s.StartedAt = id, time.Now().UnixNano(), startedAt().UnixNano()
		})
	}
	runtime := critest.New(t, critest.Streamed)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	f := follow(t, runtime, never, nil)
	f.expect("u1/web c1 running since 1700000000", "synced")
	subscribed(t, runtime)
	runtime.Silence(true)

	// From before the list, of a container that is not in it any more.
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: "c0", ContainerEventType: started, CreatedAt: 1, ContainersStatuses: []*runtimeapi.ContainerStatus{ran("c0")},
	})
	// Without statuses: the runtime is asked.
	runtime.Exit(c1, 1, "Error")
	runtime.Send(&runtimeapi.ContainerEventResponse{ContainerId: c1, ContainerEventType: stopped})
	f.expect("u1/web c1 not running: exited with code 1")
	// Late: the container has ended in the meantime.
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: c1, ContainerEventType: started, ContainersStatuses: []*runtimeapi.ContainerStatus{ran(c1)},
	})
	// Of a sandbox, and of a container that is gone again.
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: "s1", ContainerEventType: started, PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "s1"},
	})
	runtime.Send(&runtimeapi.ContainerEventResponse{ContainerId: "c9", ContainerEventType: started})
	// Stopped, with statuses from before the stop: the runtime is asked.
	c2 := runtime.Create(web(), 1)
	runtime.Run(c2, startedAt())
	runtime.Exit(c2, 2, "Error")
	runtime.Send(&runtimeapi.ContainerEventResponse{
		ContainerId: c2, ContainerEventType: stopped, ContainersStatuses: []*runtimeapi.ContainerStatus{ran(c2)},
	})
	f.expect("u1/web c2 running since 1700000000", "u1/web c2 not running: exited with code 2")
}

// TestTrackerSkipsWhatIsNoAnswer has containers of others, and one whose state the
// runtime has lost: what was known of it stands.
func TestTrackerSkipsWhatIsNoAnswer(t *testing.T) {
	runtime := critest.New(t, critest.Unimplemented)
	c1 := runtime.Create(web(), 0)
	runtime.Run(c1, startedAt())
	foreign := runtime.Create(probeid.Container{}, 0)
	runtime.Run(foreign, startedAt())
	f := follow(t, runtime, always, nil)
	f.expect("u1/web c1 running since 1700000000", "synced")
	runtime.Edit(c1, func(s *runtimeapi.ContainerStatus) { s.State = runtimeapi.ContainerState_CONTAINER_UNKNOWN })
	lists := runtime.Calls()["ListContainers"]
	eventually(t, "no more lists", func() bool { return runtime.Calls()["ListContainers"] > lists+2 })
	runtime.Exit(c1, 1, "Error")
	f.expect("u1/web c1 not running: exited with code 1")
}
