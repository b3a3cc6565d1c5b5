// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runner implements ExecSync with a function.
type runner func(ctx context.Context, containerID string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error)

func (r runner) ExecSync(ctx context.Context, containerID string, _ []string, timeout time.Duration) ([]byte, []byte, int32, error) {
	return r(ctx, containerID, timeout)
}

func target(containerID string) probing.Target {
	return probing.Target{
		Handler: probing.HandlerExec, Timeout: time.Second, ContainerID: containerID,
		Exec: &probing.Exec{Command: []string{"/idle"}},
	}
}

// open returns a prober that is closed when the test ends.
func open(t *testing.T, runner exec.Runner, concurrency int, observer exec.Observer) *exec.Prober {
	prober := exec.New(runner, concurrency, observer)
	t.Cleanup(prober.Close)
	return prober
}

// result returns a runner that returns immediately.
func result(stdout, stderr string, exitCode int32, err error) runner {
	return func(context.Context, string, time.Duration) ([]byte, []byte, int32, error) {
		return []byte(stdout), []byte(stderr), exitCode, err
	}
}

func TestProbeEvaluatesResult(t *testing.T) {
	timedOut := fmt.Errorf("exec: %w", context.DeadlineExceeded)
	cases := map[string]struct {
		runner runner
		want   probing.Outcome
	}{
		"success":                {runner: result("idle\n", "", 0, nil), want: probing.Outcome{Success: true, Message: "idle"}},
		"success without output": {runner: result("", "", 0, nil), want: probing.Outcome{Success: true}},
		"success keeps stderr":   {runner: result("idle\n", "warn\n", 0, nil), want: probing.Outcome{Success: true, Message: "idle\nwarn"}},
		"failure":                {runner: result("busy\n", "2 players\n", 1, nil), want: probing.Outcome{Message: "busy\n2 players"}},
		"failure without output": {runner: result("", "\n", 137, nil), want: probing.Outcome{Message: "exited with code 137"}},
		"negative exit code":     {runner: result("", "command timed out", -1, nil), want: probing.Outcome{Message: "command timed out"}},
		"timeout":                {runner: result("", "", 0, timedOut), want: probing.Outcome{TimedOut: true, Message: "timed out after 1s"}},
		"timeout with output":    {runner: result("half", "way", 0, timedOut), want: probing.Outcome{TimedOut: true, Message: "timed out after 1s\nhalf\nway"}},
		"100 KiB of invalid UTF-8": {
			runner: result(strings.Repeat("\xff", 100<<10), "boom", 1, nil),
			want:   probing.Outcome{Message: strings.Repeat("\ufffd", 339) + "\nboom"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := open(t, tc.runner, 1, nil).Probe(t.Context(), target("c1"))
			expect.NoError(t, err)
			expect.Equal(t, "Probe()", tc.want, got)
		})
	}
}

func TestProbePassesTheTarget(t *testing.T) {
	var gotID string
	var gotTimeout time.Duration
	run := func(_ context.Context, id string, timeout time.Duration) ([]byte, []byte, int32, error) {
		gotID, gotTimeout = id, timeout
		return nil, nil, 0, nil
	}
	if _, err := open(t, runner(run), 1, nil).Probe(t.Context(), target("c1")); err != nil {
		t.Fatalf("Probe: %v", err)
	}
	if gotID != "c1" || gotTimeout != time.Second {
		t.Errorf("ran in %q with timeout %s, want c1 and 1s", gotID, gotTimeout)
	}
}

func TestProbeCannotTell(t *testing.T) {
	lost := errors.New("connection lost")
	if got, err := open(t, result("", "", 0, lost), 1, nil).Probe(t.Context(), target("c1")); !errors.Is(err, lost) {
		t.Errorf("Probe() = %+v, %v, want error %v", got, err, lost)
	}
}

// Runtimes round timeouts up to whole seconds.
func TestTimeoutsBetweenSeconds(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, takes time.Duration
		want           probing.Outcome
	}{
		"in time":                   {500 * time.Millisecond, 500 * time.Millisecond, probing.Outcome{Success: true, Message: "idle"}},
		"later, before the runtime": {500 * time.Millisecond, 900 * time.Millisecond, probing.Outcome{TimedOut: true, Message: "timed out after 500ms\nidle"}},
		"over a second":             {1500 * time.Millisecond, 1600 * time.Millisecond, probing.Outcome{TimedOut: true, Message: "timed out after 1.5s\nidle"}},
		"the runtime decides":       {time.Second, 1100 * time.Millisecond, probing.Outcome{Success: true, Message: "idle"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(context.Context, string, time.Duration) ([]byte, []byte, int32, error) {
					<-time.After(test.takes)
					return []byte("idle"), nil, 0, nil
				}
				limited := target("c1")
				limited.Timeout = test.timeout
				got, err := open(t, runner(run), 1, nil).Probe(t.Context(), limited)
				if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
					t.Errorf("error %v, outcome (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}

func TestProbeTimesOutIfRuntimeIgnoresTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		prober := open(t, hang(), 1, nil)
		got, err := prober.Probe(t.Context(), target("c1"))
		expect.NoError(t, err)
		expect.Equal(t, "Probe()", probing.Outcome{TimedOut: true, Message: "timed out after 1s"}, got)
		expect.Equal(t, "probe took", 2*time.Second, time.Since(start))
	})
}

// hang returns a runner that returns when its context ends.
func hang() runner {
	return func(ctx context.Context, _ string, _ time.Duration) ([]byte, []byte, int32, error) {
		<-ctx.Done()
		return nil, nil, 0, ctx.Err()
	}
}

func TestWaitingProbeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopping := errors.New("agent stops")
		ctx, cancel := context.WithCancelCause(t.Context())
		prober := open(t, hang(), 1, nil)
		errs := make(chan error, 2)
		for i := range 2 {
			go func() {
				_, err := prober.Probe(ctx, owned("games", fmt.Sprint("pod", i), "probe"))
				errs <- err
			}()
		}
		synctest.Wait()
		cancel(stopping)
		for range 2 {
			if err := <-errs; !errors.Is(err, stopping) {
				t.Errorf("error = %v, want %v", err, stopping)
			}
		}
	})
}

// TestRunningProbeEndsWithItsContext ends probes while the runtime may still be starting their command,
// and later. The call is not canceled before, and takes its slot until it has ended.
func TestRunningProbeEndsWithItsContext(t *testing.T) {
	for name, tc := range map[string]struct{ stop, wantEnd time.Duration }{
		"may be starting": {stop: 100 * time.Millisecond, wantEnd: 5 * time.Second},
		"has started":     {stop: 7 * time.Second, wantEnd: 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var ended time.Duration
				prober := open(t, runner(func(ctx context.Context, id string, timeout time.Duration) ([]byte, []byte, int32, error) {
					if id == "c1" {
						defer func() { ended = time.Since(start) }()
						return hang()(ctx, id, timeout)
					}
					return nil, nil, 0, nil
				}), 1, nil)
				ctx, cancel := context.WithTimeout(t.Context(), tc.stop)
				defer cancel()
				long := target("c1")
				long.Timeout = time.Minute
				if got, err := prober.Probe(ctx, long); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != tc.stop {
					t.Errorf("Probe() = %+v, %v after %s, want the end of its context after %s", got, err, time.Since(start), tc.stop)
				}
				if got, err := prober.Probe(t.Context(), target("c2")); err != nil || !got.Success || time.Since(start) != tc.wantEnd {
					t.Errorf("Probe() = %+v, %v after %s, want success after %s", got, err, time.Since(start), tc.wantEnd)
				}
				expect.Equal(t, "call ended after", tc.wantEnd, ended)
			})
		})
	}
}

// TestProbesRunInOrderOfArrival starts more probes than there are slots. The time in the
// queue is not part of the timeout.
func TestProbesRunInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const probes, slots, each = 7, 3, 900 * time.Millisecond
		const atOnce = 2 // the share of one namespace
		log := queueLog{start: time.Now(), began: map[string]time.Duration{}}
		run := func(ctx context.Context, id string, _ time.Duration) ([]byte, []byte, int32, error) {
			log.enter(id)
			defer log.leave()
			select {
			case <-ctx.Done():
				return nil, nil, 0, ctx.Err()
			case <-time.After(each):
				return nil, nil, 0, nil
			}
		}
		prober := open(t, runner(run), slots, &log)
		outcomes := make(chan probing.Outcome, probes)
		want := map[string]time.Duration{}
		for i := range probes {
			id := fmt.Sprint("c", i)
			want[id] = time.Duration(i/atOnce) * each
			go func() {
				run := target(id)
				run.Owner.Pod = id
				got, err := prober.Probe(t.Context(), run)
				if err != nil {
					t.Errorf("Probe of %s: %v", id, err)
				}
				outcomes <- got
			}()
			synctest.Wait()
		}
		expect.Equal(t, "Queued()", probes-atOnce, prober.Queued())
		for range probes {
			if got := <-outcomes; !got.Success {
				t.Errorf("outcome = %+v, want success", got)
			}
		}
		slices.Sort(log.waits)
		expect.Equal(t, "waits", []time.Duration{0, 0, each, each, 2 * each, 2 * each, 3 * each}, log.waits)
		expect.Equal(t, "start times", want, log.began)
		if log.most != atOnce || prober.Queued() != 0 {
			t.Errorf("%d at a time and %d left in the queue, want %d and 0", log.most, prober.Queued(), atOnce)
		}
	})
}

// queueLog records when commands run and how long they wait.
type queueLog struct {
	start         time.Time
	mu            sync.Mutex
	began         map[string]time.Duration
	waits         []time.Duration
	running, most int
}

func (l *queueLog) enter(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began[id] = time.Since(l.start)
	l.running++
	l.most = max(l.most, l.running)
}

func (l *queueLog) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
}

func (l *queueLog) Unended() {}

func (l *queueLog) Waited(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, d)
}
