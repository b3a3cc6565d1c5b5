// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/process"
	"github.com/seamark-dev/seamark/test/terminal"
	"github.com/seamark-dev/seamark/test/uistream"
)

// failure is the expected failure of a probe that restarts its container once.
type failure struct {
	// probe is the type of the probe, and container its container.
	probe, container string
	// minSuccesses and maxSuccesses limit the number of successes before the first failure.
	minSuccesses, maxSuccesses int
	// threshold is the number of consecutive failures that restart the container.
	threshold int
	// message is part of the message of each failure event.
	message  string
	exitCode int32
}

// check checks the runs before the restart: successes, then as many failures as the threshold,
// an event for each of them, an event for the kill, and one restart.
func (f failure) check(t *testing.T, r result) {
	t.Helper()
	runs := r.runs(f.probe, f.container)[0]
	successes := count(runs, "Success")
	if successes < f.minSuccesses || successes > f.maxSuccesses {
		t.Errorf("%d successes before the first failure, want %d to %d", successes, f.minSuccesses, f.maxSuccesses)
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
		if failed := one.Probe.Transition && one.Probe.State == "Failed"; failed != (one.Probe.Streak == f.threshold) {
			t.Errorf("failure %d of %d changes the state to %s: %v", one.Probe.Streak, f.threshold, one.Probe.State, failed)
		}
	}
	var want []int
	for i := range f.threshold {
		want = append(want, i+1)
	}
	expect.Equal(t, "failures", want, streaks)
	unhealthy := 0
	for _, message := range r.events("", "Unhealthy") {
		if strings.HasPrefix(message, f.probe+" probe failed: ") && strings.Contains(message, f.message) {
			unhealthy++
		}
	}
	if unhealthy < f.threshold {
		t.Errorf("%d events Unhealthy with %q, want %d", unhealthy, f.message, f.threshold)
	}
	killing := "Container " + f.container + " failed " + strings.ToLower(f.probe) + " probe, will be restarted"
	if messages := r.events("", "Killing"); !slices.Contains(messages, killing) {
		t.Errorf("events Killing are %q, want %q", messages, killing)
	}
	restarts, codes := r.restarts(f.container)
	if restarts != 1 || !slices.Equal(codes, []int32{f.exitCode}) {
		t.Errorf("%d restarts with exit codes %v, want one with %d", restarts, codes, f.exitCode)
	}
}

// Exit codes of a process that was terminated by a signal.
const (
	terminated = 128 + 15
	killed     = 128 + 9
)

// The failing probe, the number of failures and the restart are as documented in the example.
func TestProbesThatRestart(t *testing.T) {
	for file, want := range map[string]failure{
		"exec-liveness": {
			probe: "Liveness", container: "worker", minSuccesses: 3, maxSuccesses: 8, threshold: 3, message: "healthy: No such file", exitCode: terminated,
		},
		"http-liveness": {probe: "Liveness", container: "web", minSuccesses: 2, maxSuccesses: 5, threshold: 3, message: "statuscode: 500", exitCode: 0},
		"tcp":           {probe: "Liveness", container: "server", minSuccesses: 2, maxSuccesses: 8, threshold: 4, message: "connection refused", exitCode: 0},
		"grpc":          {probe: "Liveness", container: "server", minSuccesses: 1, maxSuccesses: 4, threshold: 2, message: "NOT_SERVING", exitCode: 0},
		"http-headers":  {probe: "Liveness", container: "web", threshold: 4, message: "statuscode: 403", exitCode: 0},
		// The startup probe fails before the server listens.
		"startup-failure": {probe: "Startup", container: "web", threshold: 3, message: "connection refused", exitCode: 0},
		"grace-period":    {probe: "Liveness", container: "worker", threshold: 3, message: "hangs", exitCode: killed},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r := seamark(t, "-f", examples+"probes/"+file+".yaml", "--timeout", "90s", "--crash-loop-initial", "1s",
				"--until", "pod/"+file+" restarts=1")
			r.wantCode(t, 0)
			want.check(t, r)
			switch file {
			case "tcp":
				checkUnreadyBeforeRestart(t, r)
			case "http-headers":
				if n := count(r.runs("Readiness", "web")[0], "Success"); n == 0 {
					t.Error("the readiness probe, which sends the header, never succeeded")
				}
			case "startup-failure":
				if runs := r.runs("Liveness", "web"); len(runs) > 0 {
					t.Errorf("the liveness probe ran: %v", runs)
				}
			}
		})
	}
}

// checkUnreadyBeforeRestart checks that the readiness probe made the pod unready before the
// liveness probe restarted the container.
func checkUnreadyBeforeRestart(t *testing.T, r result) {
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
	expect.Equal(t, "order", []string{"Ready True", "Ready False", "Killing"}, order[at:at+3])
}

// All probes resolve the named port, and the container is not restarted.
func TestNamedPort(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/named-port.yaml", "--timeout", "7s").beforeStop()
	r.wantCode(t, 0)
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
		t.Errorf("Ready had the values %v, want True among them", ready)
	}
}

// The startup probe may fail until the server listens. The liveness probe, which has a
// failure threshold of 1, does not run before.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/slow-start.yaml", "--timeout", "14s")
	r.wantCode(t, 0)
	startup, liveness := r.runs("Startup", "web")[0], r.runs("Liveness", "web")[0]
	if n := count(startup, "Failure"); n < 3 || n > 7 {
		t.Errorf("%d startup failures in six seconds, want 3 to 7", n)
	}
	expect.Equal(t, "startup successes", 1, count(startup, "Success"))
	if n := count(liveness, "Success"); n < 2 || n != len(liveness) {
		t.Errorf("%d of %d liveness runs succeeded, want several and all", n, len(liveness))
	}
	checkStartupFirst(t, startup, liveness)
	if restarts, _ := r.restarts("web"); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

// The pod alternates between ready and not ready, and the container is not restarted.
func TestExecReadiness(t *testing.T) {
	t.Parallel()
	r := seamark(t, "-f", examples+"probes/exec-readiness.yaml", "--timeout", "16s")
	r.wantCode(t, 0)
	ready := r.conditions("exec-readiness", "Ready")
	if at := slices.Index(ready, "True"); at < 0 || len(ready) < at+3 || !slices.Equal(ready[at:at+3], []string{"True", "False", "True"}) {
		t.Errorf("Ready had the values %v, want True, False, True", ready)
	}
	transitions := 0
	for _, one := range r.runs("Readiness", "worker")[0] {
		if one.Probe.Transition && one.Probe.State == "Failed" {
			transitions++
			expect.Equal(t, "Failed after failures in a row", 2, one.Probe.Streak)
		}
	}
	if transitions == 0 {
		t.Error("the readiness probe never failed twice in a row")
	}
	if restarts, _ := r.restarts("worker"); restarts != 0 {
		t.Errorf("%d restarts", restarts)
	}
}

// On a terminal the output is a table. Keys filter it, pause it and end the run.
func TestTerminal(t *testing.T) {
	t.Parallel()
	command := exec.Command("seamark", "local", "-f", examples+"game-server")
	screen := terminal.Start(t, command, 24, 80)
	out := &screen.Output
	out.Await(t, "POD / PROBE")
	out.Await(t, "gameserver-idle=true")
	screen.Press(t, "/")
	screen.Press(t, "server-3\r")
	out.Await(t, "filter: server-3")
	screen.Press(t, "p")
	out.Await(t, "PAUSED")
	screen.Press(t, "q")
	expect.NoError(t, screen.Wait())
	// The table before the pods ended stays on the terminal, without the filter.
	_, last, found := strings.Cut(out.String(), "PAUSED")
	if at := strings.LastIndex(last, "POD / PROBE"); !found || at < 0 {
		t.Fatalf("no table at the end:\n%s", last)
	} else {
		last = last[at:]
	}
	for _, want := range []string{"game-server-0", "game-server-4", "game-server#Idle", "Running"} {
		if !strings.Contains(last, want) {
			t.Errorf("last table does not contain %q:\n%s", want, last)
		}
	}
}

// The second interrupt kills a pod that does not terminate.
func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	const manifest = `{apiVersion: v1, kind: Pod, metadata: {name: stubborn}, spec: {terminationGracePeriodSeconds: 600,
		containers: [{name: main, command: [sh, -c, "trap '' TERM; echo trapped; while true; do sleep 600; done"]}]}}`
	command := exec.Command("seamark", "local", "-f", "-", "--logs")
	out := &process.Buffer{}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(manifest), out, os.Stderr
	expect.NoError(t, command.Start())
	// Only the container prints this. The event "Container started" comes before the shell sets its trap.
	out.Await(t, "trapped")
	for _, want := range []string{"Stopping container main", "signal 9"} {
		expect.NoError(t, command.Process.Signal(syscall.SIGINT))
		out.Await(t, want)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, out)
	}
}

// The page shows the pods and their history until the end of the run, whatever the output is.
func TestWebPage(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "seamark", "local", "-o", "json", "-f", examples+"first-marker", "--ui")
	stderr, err := command.StderrPipe()
	expect.NoError(t, err)
	expect.NoError(t, command.Start())
	var address string
	lines := bufio.NewScanner(stderr)
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "Web page: ")
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			address = ""
		}
	}
	page, err := uistream.Enter(t.Context(), address)
	expect.NoError(t, err)
	if status, _ := get(t, http.DefaultClient, page.Base+"/api/v1/session"); status == http.StatusOK {
		t.Error("the page shows data without the key")
	}

	stream := uistream.Open(t, page.Client, page.Base, "")
	for pod := stream.Pods["default/worker-0"]; pod.State != model.Failed; pod = stream.Pods["default/worker-0"] {
		if _, more := stream.Next(); !more {
			t.Fatalf("the stream ended; worker-0: %+v", pod)
		}
	}
	if workload := stream.Pods["default/worker-0"].Workload; workload == nil || workload.Name != "worker" || len(stream.Pods) != 2 {
		t.Errorf("pods %+v, want two of the workload worker", stream.Pods)
	}
	var timeline model.Timeline
	_, body := get(t, page.Client, page.Base+"/api/v1/timeline?namespace=default&pod=worker-0&since=15m")
	if err := json.Unmarshal([]byte(body), &timeline); err != nil || len(timeline.Lines) != 1 ||
		timeline.Lines[0].Spans[len(timeline.Lines[0].Spans)-1].Phase != "Failed" {
		t.Errorf("timeline %s: %v", body, err)
	}

	expect.NoError(t, command.Process.Signal(syscall.SIGINT))
	for {
		if _, more := stream.Next(); !more {
			break
		}
	}
	rest, err := io.ReadAll(stderr)
	if next := "The web page was opened. For another browser, it has the URL " + page.Base; !strings.Contains(string(rest), next) ||
		strings.Contains(string(rest), address) {
		t.Errorf("standard error has no other URL: %s", rest)
	}
	if err := errors.Join(err, command.Wait()); err != nil {
		t.Errorf("seamark local: %v\n%s", err, rest)
	}
}

func get(t *testing.T, client *http.Client, address string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	expect.NoError(t, err)
	response, err := client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return response.StatusCode, string(text)
}
