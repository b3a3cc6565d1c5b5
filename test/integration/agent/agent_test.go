// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/chaos/proxy"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestRestartWithoutChangesWritesNothing restarts the agent without a state change in between.
func TestRestartWithoutChangesWritesNothing(t *testing.T) {
	for name, options := range crds() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, env.Start(t, options...), critest.Streamed)
			w.node = "restart"
			w.run("p")
			w.setAnswer("yes", answer{stdout: "ok"})
			w.setAnswer("no", answer{stdout: "bad", code: 1})
			w.plan(w.pod("p", "yes", "no"))
			stop := w.startAgent()
			w.reported("p yes", succeeded, "ok")
			w.reported("p no", failed, "bad")
			w.eventually(func() (bool, string) { return len(w.events()) == 2, fmt.Sprint(w.events()) })
			stop()
			before := w.versions()

			w.startAgent()
			w.ranAgain("yes", 3)
			w.ranAgain("no", 3)
			if diff := cmp.Diff(before, w.versions()); diff != "" || len(before) != 2 {
				t.Errorf("versions before and after the restart:\n%s", diff)
			}
			if events := w.events(); len(events) != 2 {
				t.Errorf("events after the restart: %v", events)
			}
			w.setAnswer("yes", answer{stdout: "worse", code: 1})
			w.reported("p yes", failed, "worse")
		})
	}
}

func TestContainerChanges(t *testing.T) {
	for name, events := range map[string]critest.Events{"streamed": critest.Streamed, "listed": critest.Unimplemented} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shared, events)
			id := w.run("p")
			w.setAnswer("yes", answer{stdout: "ok"})
			w.plan(w.pod("p", "yes"), w.pod("never", "yes"))
			stop := w.startAgent()
			first := w.reported("p yes", succeeded, "ok")

			w.runtime.Exit(id, 7, "Error")
			ended := w.reported("p yes", failed, "the container is not running: exited with code 7")
			if ended.LastTransitionTime.Before(&first.LastTransitionTime) {
				t.Errorf("transition times: %s, then %s", first.LastTransitionTime, ended.LastTransitionTime)
			}
			runs := w.ran("yes")
			w.setAnswer("yes", answer{stdout: "again"})
			w.run("p")
			w.reported("p yes", succeeded, "again")
			if runs == w.ran("yes") {
				t.Error("state Succeeded without a run")
			}

			// A container that restarts while the agent is down is new to the next agent.
			stop()
			w.setAnswer("yes", answer{stdout: "late", code: 1})
			w.run("p")
			w.startAgent()
			w.reported("p yes", failed, "late")
			want := []string{
				"p Failed m#yes: late", "p Failed m#yes: the container is not running: exited with code 7",
				"p Succeeded m#yes: again", "p Succeeded m#yes: ok",
			}
			w.eventually(func() (bool, string) {
				diff := cmp.Diff(want, slices.Sorted(slices.Values(w.events())))
				return diff == "", diff
			})
			if _, found := w.states()["never yes"]; found {
				t.Error("a state is reported for a container that never existed")
			}
		})
	}
}

func TestPlanChanges(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("old", answer{stdout: "old"})
	w.setAnswer("new", answer{stdout: "new"})
	w.setAnswer("stays", answer{stdout: "1"})
	w.startAgent()
	w.plan(w.pod("p", "old", "stays"))
	w.reported("p old", succeeded, "old")
	before := w.reported("p stays", succeeded, "1")

	pod := w.pod("p", "stays", "new")
	w.plan(pod)
	w.reported("p new", succeeded, "new")
	w.eventually(func() (bool, string) {
		object := w.object()
		return object.Status.ObservedGeneration == object.Generation && len(w.states()) == 2,
			fmt.Sprint(slices.Collect(maps.Keys(w.states())))
	})
	if stays := w.states()["p stays"]; !stays.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("%+v became %+v", before, stays)
	}
	runs := w.ran("old")
	w.ranAgain("stays", 2)
	if w.ran("old") != runs {
		t.Error("a probe still runs after it was removed from the plan")
	}

	// Another command restarts the evaluation.
	pod.Probes[0].Probe.Exec.Command = []string{"other"}
	w.setAnswer("other", answer{stdout: "no", code: 1})
	w.plan(pod)
	w.reported("p stays", failed, "no")

	w.plan()
	w.eventually(func() (bool, string) {
		object := w.object()
		return object.Status.ObservedGeneration == object.Generation && object.Status.Probes == 0, fmt.Sprint(object.Status)
	})
}

// TestRuntimeCalls checks that network probes never call the runtime, and that exec probes call it
// once per run.
func TestRuntimeCalls(t *testing.T) {
	served := make(chan struct{}, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served <- struct{}{} }))
	defer server.Close()
	address, err := url.Parse(server.URL)
	expect.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	expect.NoError(t, err)
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	pod := w.pod("p")
	pod.Probes = []v1alpha1.ContainerProbe{probe("http", corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(port)}})}
	w.plan(pod)
	w.startAgent()
	w.reported("p http", succeeded, "")
	before := w.runtime.Calls()
	for len(served) > 0 {
		<-served
	}
	for range 3 {
		<-served
	}
	expect.Equal(t, "network probes called the runtime", before, w.runtime.Calls())

	w.plan(w.pod("p", "yes"))
	w.reported("p yes", succeeded, "")
	before = w.runtime.Calls()
	runs := w.ran("yes")
	w.ranAgain("yes", 3)
	after := w.runtime.Calls()
	more := after["ExecSync"] - before["ExecSync"]
	before["ExecSync"] = after["ExecSync"]
	if diff := cmp.Diff(before, after); diff != "" || more > w.ran("yes")-runs {
		t.Errorf("%d calls for %d runs, and:\n%s", more, w.ran("yes")-runs, diff)
	}
}

// TestStop checks that an agent stops although a probe hangs, and that the known states are
// reported.
func TestStop(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("yes", answer{stdout: "ok"})
	w.setAnswer("hangs", answer{after: time.Hour})
	pod := w.pod("p", "yes", "hangs")
	pod.Probes[1].Probe.TimeoutSeconds = 3600
	w.plan(pod)
	stop := w.startAgent()
	w.ranAgain("hangs", 1)
	w.reported("p yes", succeeded, "ok")
	// The documented five seconds, plus slack for a busy machine.
	if took := stop(); took > 10*time.Second {
		t.Errorf("the agent took %s to stop", took)
	}
	expect.Success(t, w.Client.Get(t.Context(), client.ObjectKey{Name: w.node}, &v1alpha1.NodePodProbe{}))
	if state, found := w.states()["p hangs"]; found {
		t.Errorf("an interrupted run was counted: %+v", state)
	}
}

// An agent that starts before the CRDs are served does not exit, and works when they are served.
func TestAgentStartsBeforeCRDs(t *testing.T) {
	own := env.Start(t, env.NoCRDs())
	w := newWorld(t, own, critest.Streamed)
	stop := w.startAgent()
	expect.NoError(t, own.InstallCRDs())
	w.run("a")
	w.plan(w.pod("a", "p"))
	w.reported("a p", succeeded, "")
	stop()
}

// TestOutage checks that probing continues while the API server can't be reached, and that the
// current states and the current plan are transferred afterwards.
func TestOutage(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("yes", answer{stdout: "before"})
	w.setAnswer("other", answer{stdout: "other"})
	w.plan(w.pod("p", "yes"))
	line, err := proxy.New(proxy.Options{Upstream: w.rights})
	expect.NoError(t, err)
	// The agent stops first.
	t.Cleanup(func() { _ = line.Close() })
	config, err := line.Config("agent")
	expect.NoError(t, err)
	config.BearerToken = w.rights.BearerToken
	w.startAgentWith(config)
	w.reported("p yes", succeeded, "before")
	w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })

	expect.NoError(t, line.Set(proxy.Fault{Kind: proxy.Down}))
	w.setAnswer("yes", answer{stdout: "in between", code: 1})
	w.ranAgain("yes", 4)
	w.setAnswer("yes", answer{stdout: "at last", code: 1})
	w.plan(w.pod("p", "yes", "other"))
	w.ranAgain("yes", 4)
	if state := w.states()["p yes"]; state.State != succeeded {
		t.Fatalf("a state was reported while the connection was cut: %+v", state)
	}
	line.Clear()
	w.Poll.Timeout = 15 * time.Second
	w.Until("the current states are reported", func() error {
		all := w.states()
		yes, other := all["p yes"], all["p other"]
		return await.ErrorIf(yes.State != failed || yes.Message != "at last" || other.State != succeeded || other.Message != "other", "%+v", all)
	})
	w.Poll.Timeout = await.Timeout
	w.eventually(func() (bool, string) {
		events := w.events()
		return len(events) == 3, "events: " + fmt.Sprint(events)
	})
}

// setStatus writes the status of the node's object as the API server stores it.
func (w *world) setStatus(status v1alpha1.NodePodProbeStatus) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	expect.NoError(w, err)
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: w.node}}
	expect.NoError(w, w.Client.Status().Patch(w.Context(), object, env.MergePatch(string(patch))))
}

// openKruiseStatus returns a status with the state of the probe m#yes of pod p, as the daemon of
// OpenKruise reports.
func (w *world) openKruiseStatus(state v1alpha1.ProbeState, message string) v1alpha1.NodePodProbeStatus {
	at := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	return v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Name: "p", Namespace: w.Namespace, UID: string(uidOf("p")),
		ProbeStates: []v1alpha1.ContainerProbeState{{
			Name: "m#yes", State: state, Message: message, LastProbeTime: at, LastTransitionTime: at,
		}},
	}}}
}

// TestTakeover starts an agent on a node whose states are in the status. The states stay, and move from
// the status to slices.
func TestTakeover(t *testing.T) {
	for name, options := range crds() {
		t.Run(name, func(t *testing.T) {
			upstream := len(options) > 0
			w := newWorld(t, env.Start(t, options...), critest.Streamed)
			w.node = "takeover"
			w.runSince("p", time.Now().Add(-2*time.Hour))
			w.setAnswer("yes", answer{after: time.Hour})
			pod := w.pod("p", "yes")
			pod.Probes[0].Probe.TimeoutSeconds = 300
			w.plan(pod)
			before := w.openKruiseStatus(failed, "reported earlier")
			w.setStatus(before)
			want := before.PodProbeStatuses[0].ProbeStates[0]

			stop := w.startAgent()
			got := w.reported("p yes", failed, "reported earlier")
			if !got.LastTransitionTime.Equal(&want.LastTransitionTime) {
				t.Errorf("transition at %s, want %s", got.LastTransitionTime, want.LastTransitionTime)
			}
			w.eventually(func() (bool, string) {
				status := w.object().Status
				return status.ProbeReports != upstream && len(status.PodProbeStatuses) == 0, fmt.Sprintf("status: %+v", status)
			})
			w.setAnswer("yes", answer{stdout: "new"})
			stop()

			// The agent starts from the same state again.
			w.startAgent()
			w.reported("p yes", succeeded, "new")
			w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })
		})
	}
}
