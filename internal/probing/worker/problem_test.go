// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestReason(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	cases := map[string]struct{ err, want string }{
		"containerd, program missing": {
			"run command in container " + id + ": exec in container " + id + ": rpc error: code = Unknown desc = failed to exec in container: " +
				`failed to start exec "` + id + `": OCI runtime exec failed: exec failed: unable to start container process: ` +
				`exec: "/idel": stat /idel: no such file or directory: unknown`,
			`exec: "/idel": stat /idel: no such file or directory`,
		},
		"older runc": {
			`rpc error: code = Unknown desc = failed to exec in container: failed to start exec "` + id +
				`": OCI runtime exec failed: exec failed: container_linux.go:380: starting container process caused: exec: "sh": executable file not found in $PATH: unknown`,
			`container_linux.go:380: starting container process caused: exec: "sh": executable file not found in $PATH`,
		},
		"other error with IDs": {
			`rpc error: code = NotFound desc = an error occurred when try to find container "` + id + `": not found`,
			`an error occurred when try to find container "...": not found`,
		},
		"local run": {
			"run command in container 7264b3b1-main-0: start /check: no such file or directory", "start /check: no such file or directory",
		},
		"short hexadecimal numbers": {"address 0xc0ffee, deadbeef", "address 0xc0ffee, deadbeef"},
		"invalid UTF-8":             {"exec: \xff", "exec: \ufffd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "Reason()", tc.want, worker.Reason(errors.New(tc.err)))
		})
	}
}

// unavailable is the error of a runtime that does not answer.
type unavailable struct{ error }

func (unavailable) Unavailable() bool { return true }

// problems records how the problem of each probe changes: time, name and reason.
func (b *bench) problem(change worker.Change) {
	before, after := b.troubled[change.Key.Probe], change.State.Problem.Reason
	if before == after {
		return
	}
	b.troubled[change.Key.Probe] = after
	b.problems = append(b.problems, fmt.Sprintf("%s %s %q", time.Since(b.start), change.Key.Probe, after))
}

func TestProblems(t *testing.T) {
	type result struct {
		took    time.Duration
		outcome probing.Outcome
		err     error
	}
	success := result{outcome: probing.Outcome{Success: true}}
	failed := result{err: errors.New("not found")}
	lost := result{err: fmt.Errorf("exec: %w", unavailable{errors.New("connection lost")})}
	hung := result{outcome: probing.Outcome{TimedOut: true, NotEnded: true}}
	cases := map[string]struct {
		results           []result
		problems, changes []string
	}{
		"runs": {[]result{success, success}, nil, []string{"0s a >Succeeded"}},
		"cannot run": {
			[]result{failed, failed, success},
			[]string{`0s a "CannotRun"`, `20s a ""`}, []string{"20s a >Succeeded"},
		},
		"cannot run any more": {
			[]result{success, failed, failed},
			[]string{`10s a "CannotRun"`}, []string{"0s a >Succeeded"},
		},
		"runtime unavailable": {[]result{success, lost, lost}, nil, []string{"0s a >Succeeded"}},
		"run not ended": {
			[]result{success, hung, success},
			[]string{`10s a "NotEnded"`, `20s a ""`}, []string{"0s a >Succeeded", "10s a Succeeded>Failed", "20s a Failed>Succeeded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer b.stop()
				b.result = func(_ probing.Target, n int) (time.Duration, probing.Outcome, error) {
					r := tc.results[min(n, len(tc.results))-1]
					return r.took, r.outcome, r.err
				}
				b.containerRuns("c1")
				b.plan(planned("a"))
				pass(25 * time.Second)
				expect.Equal(t, "problems", tc.problems, b.problems)
				expect.Equal(t, "transitions", tc.changes, b.changes)
			})
		})
	}
}

// TestProbeThatWaitsForSlotHasProblem lets a probe wait for a slot. The worker reports
// it after three periods, and clears it with the first run that waits less.
func TestProbeThatWaitsForSlotHasProblem(t *testing.T) {
	cases := map[string]struct {
		wait    time.Duration
		handler probing.Handler
		want    []string
	}{
		"two periods":          {wait: 20 * time.Second, handler: probing.HandlerExec},
		"five periods":         {wait: 50 * time.Second, handler: probing.HandlerExec, want: []string{`30s a "WaitingForSlot"`, `51s a ""`}},
		"network probe":        {wait: 50 * time.Second, handler: probing.HandlerHTTP, want: []string{`30s a "WaitingForSlot"`, `51s a ""`}},
		"slow network request": {handler: probing.HandlerHTTP},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer b.stop()
				b.result = func(target probing.Target, n int) (time.Duration, probing.Outcome, error) {
					switch {
					case n > 1:
						target.Started()
						return 0, probing.Outcome{Success: true}, nil
					case tc.wait == 0:
						target.Started()
						return 50 * time.Second, probing.Outcome{Success: true}, nil
					default:
						time.AfterFunc(tc.wait, target.Started)
						return tc.wait + time.Second, probing.Outcome{Success: true}, nil
					}
				}
				b.containerRuns("c1")
				b.plan(planned("a", func(task *worker.Task) { task.Target.Handler = tc.handler }))
				pass(90 * time.Second)
				expect.Equal(t, "problems", tc.want, b.problems)
			})
		})
	}
}

func TestRestoredProblemStaysUntilTheFirstRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.stop()
		b.plan(planned("a", func(task *worker.Task) {
			task.Policy.InitialDelay = 5 * time.Second
			task.Restored.Problem.Reason = v1alpha1.ProbeCannotRun
		}))
		b.containerRuns("c1")
		pass(20 * time.Second)
		expect.Equal(t, "problems", []string{`0s a "CannotRun"`, `5s a ""`}, b.problems)
	})
}
