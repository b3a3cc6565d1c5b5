// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// play is one run of a fake probe. A run that takes no time stalls until its context ends.
type play struct {
	takes   time.Duration
	outcome probing.Outcome
	err     error
}

var (
	succeeds = play{takes: 40 * time.Millisecond, outcome: probing.Outcome{Success: true, Message: "no players"}}
	fails    = play{takes: 50 * time.Millisecond, outcome: probing.Outcome{Message: "12 players"}}
	timeout  = play{takes: time.Second, outcome: probing.Outcome{TimedOut: true, Message: "timed out after 1s"}}
	slow     = play{takes: 7 * time.Second, outcome: probing.Outcome{Message: "3 players"}}
	stalls   = play{}
	errs     = play{takes: 60 * time.Millisecond, err: errors.New("exec of pod: connection reset by peer")}
	errLater = play{takes: 80 * time.Millisecond, err: errs.err}
	denies   = play{takes: 70 * time.Millisecond, err: &remote.DeniedError{
		Missing: permission.Missing{Resource: permission.Exec, Verb: "create", Namespace: "games"}, Err: errors.New("no role"),
	}}
	deniesB = play{takes: 90 * time.Millisecond, err: denies.err}
)

// script has the runs of each pod. The last one repeats.
type script map[string][]play

func (s script) transport() *fakeTransport {
	var mu sync.Mutex
	runs := map[string]int{}
	next := func(pod string) play {
		mu.Lock()
		defer mu.Unlock()
		i := min(runs[pod], len(s[pod])-1)
		runs[pod]++
		return s[pod][i]
	}
	return &fakeTransport{probe: func(ctx context.Context, container remote.Container, target probing.Target) (probing.Outcome, error) {
		if target.Started != nil {
			target.Started()
		}
		now := next(container.Pod.Name)
		if deadline, has := ctx.Deadline(); has && now.takes == 0 {
			// A dialer that knows a deadline returns its own error before ctx ends.
			<-time.After(time.Until(deadline) - time.Nanosecond)
			return probing.Outcome{}, os.ErrDeadlineExceeded
		}
		if now.takes == 0 {
			<-ctx.Done()
			return probing.Outcome{}, ctx.Err()
		}
		timer := time.NewTimer(now.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
			return now.outcome, now.err
		case <-ctx.Done():
			return probing.Outcome{}, ctx.Err()
		}
	}}
}

// executeFor runs the command with a fake clock, and interrupts it after the time, if it is not 0.
// It also returns how long the command ran.
func executeFor(t *testing.T, s script, interrupt time.Duration, in string, args ...string) (stdout, stderr string, code int, took time.Duration) {
	t.Helper()
	// The first call starts a goroutine that never ends, so it must be outside of the bubble.
	_, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	stop()
	synctest.Test(t, func(t *testing.T) {
		ctx, start := t.Context(), time.Now()
		if interrupt > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, interrupt)
			defer cancel()
		}
		clock := func() time.Time { return now.Add(time.Since(start)) }
		stdout, stderr, code = executeAt(ctx, t, clock, s.transport(), nil, in, args...)
		took = time.Since(start)
	})
	return stdout, stderr, code, took
}

// The probe has a period of 5 seconds, and thresholds of 2 and 3.
var repeatedMarker = strings.ReplaceAll(marker, "failureThreshold: 1", "periodSeconds: 5, timeoutSeconds: 5, successThreshold: 2, failureThreshold: 3")

func TestFor(t *testing.T) {
	delayed := strings.ReplaceAll(repeatedMarker, "periodSeconds", "initialDelaySeconds: 3700, periodSeconds")
	flap := []play{succeeds, succeeds, fails, fails, fails}
	for name, test := range map[string]struct {
		args      []string
		in        string
		script    script
		interrupt time.Duration
		code      int
		took      time.Duration
	}{
		"for": {
			args: []string{"--for", "24s"}, script: script{"game-0": flap, "game-1": {timeout}}, code: exit.Failed, took: 24 * time.Second,
		},
		"for-wide": {
			args: []string{"game-1", "--for", "24s", "-o", "wide"}, script: script{"game-1": {timeout}}, code: exit.Failed, took: 24 * time.Second,
		},
		"for-json": {
			args: []string{"game-0", "--for", "24s", "-o", "json"}, script: script{"game-0": flap}, code: exit.Failed, took: 24 * time.Second,
		},
		"for-yaml": {
			args: []string{"game-0", "--for", "4s", "-o", "yaml"}, script: script{"game-0": {fails}}, code: exit.Failed, took: 4 * time.Second,
		},
		"for-name":      {args: []string{"game-0", "--for", "24s", "-o", "name"}, script: script{"game-0": {succeeds}}, took: 24 * time.Second},
		"for-success":   {args: []string{"game-0", "--for", "24s", "--no-headers"}, script: script{"game-0": {fails, succeeds}}, took: 24 * time.Second},
		"for-undecided": {args: []string{"game-0", "--for", "9s"}, script: script{"game-0": {fails}}, code: exit.Failed, took: 9 * time.Second},
		"for-expect": {
			args: []string{"game-0", "--for", "24s", "--expect", "Failed"}, script: script{"game-0": {succeeds, succeeds, fails}}, took: 24 * time.Second,
		},
		"for-expect-undecided": {
			args: []string{"game-0", "--for", "9s", "--expect", "Failed"}, script: script{"game-0": {fails}}, code: exit.Failed, took: 9 * time.Second,
		},
		"for-slow":   {args: []string{"game-0", "--for", "24s"}, script: script{"game-0": {slow}}, code: exit.Failed, took: 24 * time.Second},
		"for-stalls": {args: []string{"game-0", "--for", "24s"}, script: script{"game-0": {stalls}}, code: exit.Failed, took: 24 * time.Second},
		"for-stops":  {args: []string{"game-0", "--for", "24s"}, script: script{"game-0": {succeeds, succeeds, stalls}}, took: 24 * time.Second},
		"for-errors": {
			args: []string{"game-0", "game-1", "--for", "24s"}, script: script{
				"game-0": {errs}, "game-1": {fails, errLater, fails, fails},
			}, code: exit.Failed, took: 24 * time.Second,
		},
		"for-denied": {
			args: []string{"game-0", "game-1", "--for", "1h"}, script: script{"game-0": {denies}, "game-1": {deniesB}}, code: exit.Access,
			took: 90 * time.Millisecond,
		},
		"for-denied-partly": {
			args: []string{"game-0", "game-1", "--for", "9s"}, script: script{"game-0": {succeeds}, "game-1": {denies}}, code: exit.Failed,
			took: 9 * time.Second,
		},
		"for-delayed": {args: []string{"game-0", "--for", "24s"}, in: delayed, code: exit.Failed, took: 24 * time.Second},
		"for-interrupt": {
			args: []string{"game-0", "--for", "1h"}, script: script{"game-0": {succeeds}}, interrupt: 12 * time.Second, code: exit.Failed,
			took: 12 * time.Second,
		},
		"for-no-run": {args: []string{"game-2", "proxy", "--for", "1h"}, code: exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			if test.in == "" {
				test.in = repeatedMarker
			}
			args := append([]string{"-f", "-"}, test.args...)
			stdout, stderr, code, took := executeFor(t, test.script, test.interrupt, test.in, args...)
			if code != test.code || took != test.took {
				t.Errorf("exit code %d after %s, want %d after %s", code, took, test.code, test.took)
			}
			golden.Compare(t, filepath.Join("testdata", name+".golden"), "$ seamark test "+strings.Join(args, " ")+"\n"+stdout+"--- standard error\n"+stderr)
		})
	}
}

// TestForParallel checks that probes wait for each other, and that the result of the one that never
// runs says so. Which one that is differs.
func TestForParallel(t *testing.T) {
	s := script{"game-0": {stalls}, "game-1": {stalls}}
	stdout, _, code, _ := executeFor(t, s, 0, repeatedMarker, "-f", "-", "game-0", "game-1", "--for", "39s", "--parallel", "1")
	if waited := strings.Count(stdout, "no run has ended"); code != exit.Failed || waited != 2 {
		t.Errorf("exit code %d, and %d probes without a run: %s", code, waited, stdout)
	}
	stdout, _, _, _ = executeFor(t, s, 0, repeatedMarker, "-f", "-", "game-0", "game-1", "--for", "39s", "--parallel", "1", "-o", "wide")
	expect.Equal(t, "probes that waited", 1, strings.Count(stdout, "see --parallel"))
	s = script{"game-0": {slow}, "game-1": {slow}}
	stdout, _, _, _ = executeFor(t, s, 0, repeatedMarker, "-f", "-", "game-0", "game-1", "--for", "39s", "--parallel", "1")
	expect.Equal(t, "runs of 7 seconds in 39 seconds", 5, strings.Count(stdout, " 7s "))
}

// TestForOutputFails checks that the runs end if their lines cannot be printed.
func TestForOutputFails(t *testing.T) {
	_, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	stop()
	synctest.Test(t, func(t *testing.T) {
		o := &Options{For: time.Hour, now: time.Now, IOStreams: genericiooptions.IOStreams{Out: closed{}, ErrOut: closed{}}}
		r := &runner{transport: script{"game-0": {succeeds}}.transport(), now: time.Now, parallel: 1}
		start := time.Now()
		if err := o.runFor(t.Context(), r, []*attempt{attemptOf(t)}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("runFor() returned %v, want %v", err, os.ErrClosed)
		}
		expect.Equal(t, "ended after", succeeds.takes, time.Since(start))
	})
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }
