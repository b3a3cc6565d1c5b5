// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fails is a container that is restarted once by a probe.
type fails struct {
	// probe is the kubelet's that fails, and container what it probes.
	probe, container string
	// before is how many successes come first, at least and at most.
	before, beforeMax int
	// failures is how many failures in a row restart it.
	failures int
	// says is what each failure's event contains.
	says string
	// exit is what the container ends with.
	exit int32
}

// check looks at the container's first life: successes, then exactly the failures that the
// threshold asks for, an event for each, one for the kill, and one restart.
func (f fails) check(t *testing.T, r result) {
	t.Helper()
	runs := r.runs(f.probe, f.container)[0]
	successes := count(runs, "Success")
	if successes < f.before || successes > f.beforeMax {
		t.Errorf("%d successes before the first failure, want %d to %d", successes, f.before, f.beforeMax)
	}
	var streaks []int
	for i, one := range runs {
		if one.Probe.Result != "Failure" {
			continue
		}
		if i < successes {
			t.Errorf("run %d failed before run %d succeeded", i+1, successes)
		}
		streaks = append(streaks, one.Probe.Streak)
		if judged := one.Probe.Transition && one.Probe.State == "Failed"; judged != (one.Probe.Streak == f.failures) {
			t.Errorf("failure %d of %d makes the state %s: %v", one.Probe.Streak, f.failures, one.Probe.State, judged)
		}
	}
	var want []int
	for i := range f.failures {
		want = append(want, i+1)
	}
	if diff := cmp.Diff(want, streaks); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	unhealthy := 0
	for _, message := range r.events("", "Unhealthy") {
		if strings.HasPrefix(message, f.probe+" probe failed: ") && strings.Contains(message, f.says) {
			unhealthy++
		}
	}
	if unhealthy < f.failures {
		t.Errorf("%d events Unhealthy that say %q, want %d", unhealthy, f.says, f.failures)
	}
	killing := "Container " + f.container + " failed " + strings.ToLower(f.probe) + " probe, will be restarted"
	if messages := r.events("", "Killing"); !slices.Contains(messages, killing) {
		t.Errorf("no event Killing that says %q, but %q", killing, messages)
	}
	restarts, codes := r.restarts(f.container)
	if restarts != 1 || !slices.Equal(codes, []int32{f.exit}) {
		t.Errorf("%d restarts with exit codes %v, want one with %d", restarts, codes, f.exit)
	}
}

// Exit codes of a process that a signal ended.
const (
	terminated = 128 + 15
	killed     = 128 + 9
)

// What the documentation promises of a failing probe: which one fails, after how many
// probes, and what becomes of the container.
func TestProbesThatRestart(t *testing.T) {
	for file, want := range map[string]fails{
		"exec-liveness": {probe: "Liveness", container: "worker", before: 3, beforeMax: 8, failures: 3, says: "healthy: No such file", exit: terminated},
		"http-liveness": {probe: "Liveness", container: "web", before: 2, beforeMax: 5, failures: 3, says: "statuscode: 500", exit: 0},
		"tcp":           {probe: "Liveness", container: "server", before: 2, beforeMax: 8, failures: 4, says: "connection refused", exit: 0},
		"grpc":          {probe: "Liveness", container: "server", before: 1, beforeMax: 4, failures: 2, says: "NOT_SERVING", exit: 0},
		"http-headers":  {probe: "Liveness", container: "web", failures: 4, says: "statuscode: 403", exit: 0},
		// The server does not listen yet when its time is over.
		"startup-failure": {probe: "Startup", container: "web", failures: 3, says: "connection refused", exit: 0},
		"grace-period":    {probe: "Liveness", container: "worker", failures: 3, says: "hangs", exit: killed},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r := seamark(t, "-f", examples+"probes/"+file+".yaml", "--timeout", "90s", "--crash-loop-initial", "1s",
				"--until", "pod/"+file+" restarts=1")
			r.wants(t, 0)
			want.check(t, r)
			switch file {
			case "tcp":
				unreadyBeforeRestart(t, r)
			case "http-headers":
				if n := count(r.runs("Readiness", "web")[0], "Success"); n == 0 {
					t.Error("the readiness probe, which brings the header, never succeeded")
				}
			case "startup-failure":
				if runs := r.runs("Liveness", "web"); len(runs) > 0 {
					t.Errorf("the liveness probe ran: %v", runs)
				}
			}
		})
	}
}

// unreadyBeforeRestart checks that the readiness probe took the pod out before the liveness
// probe had it restarted.
func unreadyBeforeRestart(t *testing.T, r result) {
	t.Helper()
	var order []string
	for _, one := range r.records {
		switch {
		case one.Condition != nil && one.Condition.Type == "Ready":
			order = append(order, "Ready "+one.Condition.Status)
		case one.Event != nil && one.Event.Reason == "Killing":
			order = append(order, "Killing")
		}
	}
	order = slices.Compact(order)
	at := slices.Index(order, "Ready True")
	if at < 0 || len(order) < at+3 {
		t.Fatalf("order %v", order)
	}
	if diff := cmp.Diff([]string{"Ready True", "Ready False", "Killing"}, order[at:at+3]); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// All probes find the port by its name, and nothing is restarted.
func TestNamedPort(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/named-port.yaml", "--timeout", "7s").beforeStop()
	r.wants(t, 0)
	for _, probe := range []string{"Liveness", "Readiness"} {
		runs := r.runs(probe, "web")[0]
		if n := count(runs, "Success"); n < 2 || n != len(runs) {
			t.Errorf("%s: %d of %d runs succeeded, want several and all", probe, n, len(runs))
		}
	}
	if restarts, _ := r.restarts("web"); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
	if ready := r.conditions("named-port", "Ready"); !slices.Contains(ready, "True") {
		t.Errorf("Ready went through %v", ready)
	}
}

// The startup probe fails without harm until the server listens. The liveness probe, which
// forgives nothing, has not run before.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/slow-start.yaml", "--timeout", "14s")
	r.wants(t, 0)
	startup, liveness := r.runs("Startup", "web")[0], r.runs("Liveness", "web")[0]
	if n := count(startup, "Failure"); n < 3 || n > 7 {
		t.Errorf("%d startup failures in six seconds, want 3 to 7", n)
	}
	if n := count(startup, "Success"); n != 1 {
		t.Errorf("%d startup successes, want 1: it is not asked again", n)
	}
	if n := count(liveness, "Success"); n < 2 || n != len(liveness) {
		t.Errorf("%d of %d liveness runs succeeded, want several and all", n, len(liveness))
	}
	heldBack(t, startup, liveness)
	if restarts, _ := r.restarts("web"); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

// The pod is ready and not ready by turns, and nothing is restarted.
func TestExecReadiness(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/exec-readiness.yaml", "--timeout", "16s")
	r.wants(t, 0)
	ready := r.conditions("exec-readiness", "Ready")
	if at := slices.Index(ready, "True"); at < 0 || len(ready) < at+3 || !slices.Equal(ready[at:at+3], []string{"True", "False", "True"}) {
		t.Errorf("Ready went through %v, want True, False, True", ready)
	}
	transitions := 0
	for _, one := range r.runs("Readiness", "worker")[0] {
		if one.Probe.Transition && one.Probe.State == "Failed" {
			transitions++
			if one.Probe.Streak != 2 {
				t.Errorf("Failed after %d failures in a row, want 2", one.Probe.Streak)
			}
		}
	}
	if transitions == 0 {
		t.Error("the readiness probe never failed twice in a row")
	}
	if restarts, _ := r.restarts("worker"); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}
