// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/test/expect"
)

// owned returns the target of a probe of a pod, in the pod's container.
func owned(namespace, pod, name string) probing.Target {
	t := target("container-of-" + pod)
	t.Owner = probing.Owner{Namespace: namespace, Pod: pod, Probe: name}
	return t
}

// stuck is a runtime that does not end runs until the test allows it, whatever their
// timeout. It ignores the end of the context, as containerd does while a process keeps the
// output of the command open.
type stuck struct {
	prober *exec.Prober
	start  time.Time
	// began are the times at which runs began, and end lets one end.
	began   []time.Duration
	end     chan struct{}
	unended int
}

func (s *stuck) ExecSync(context.Context, string, []string, time.Duration) ([]byte, []byte, int32, error) {
	s.began = append(s.began, time.Since(s.start))
	<-s.end
	return nil, nil, 0, errors.New("the process was killed")
}

func (s *stuck) Waited(time.Duration) {}
func (s *stuck) Unended()             { s.unended++ }

// periods runs a probe every two seconds.
func (s *stuck) periods(t *testing.T, target probing.Target, d time.Duration) (outcomes []probing.Outcome) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		next := time.Now().Add(2 * time.Second)
		outcome, err := s.prober.Probe(t.Context(), target)
		expect.NoError(t, err)
		outcomes = append(outcomes, outcome)
		<-time.After(time.Until(next))
		synctest.Wait()
	}
	return outcomes
}

func newStuck(t *testing.T) *stuck {
	s := &stuck{start: time.Now(), end: make(chan struct{})}
	s.prober = open(t, s, 16, s)
	return s
}

// TestUnendedRunsDoNotAccumulate lets a probe run every two seconds for ten minutes. Each
// period is a timeout, as for the kubelet, but only two runs are started.
func TestUnendedRunsDoNotAccumulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStuck(t)
		outcomes := s.periods(t, owned("games", "a", "idle"), 10*time.Minute)
		expect.Equal(t, "times at which runs began", []time.Duration{0, 302 * time.Second}, s.began)
		for i, got := range outcomes {
			want := probing.Outcome{TimedOut: true, NotEnded: i != 0 && i != 151, Message: "timed out after 1s"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("outcome %d (-want +got):\n%s", i, diff)
			}
		}
		if s.unended != 2 || s.prober.Unended() != 2 {
			t.Errorf("%d unended runs counted and %d now, want 2 and 2", s.unended, s.prober.Unended())
		}
		expect.Equal(t, "runs wait for a slot", 0, s.prober.Queued())
		close(s.end)
		synctest.Wait()
		expect.Equal(t, "unended runs after they have ended", 0, s.prober.Unended())
	})
}

func TestUnendedRunBlocksOnlyItsCommand(t *testing.T) {
	edited := owned("games", "a", "idle")
	edited.Exec = &probing.Exec{Command: []string{"/idle", "-v"}}
	restarted := owned("games", "a", "idle")
	restarted.ContainerID = "container2-of-a"
	cases := map[string]struct {
		target probing.Target
		want   int
	}{
		"same command":  {owned("games", "a", "idle"), 1},
		"edited":        {edited, 2},
		"new container": {restarted, 2},
		"other probe":   {owned("games", "a", "role"), 2},
		"other pod":     {owned("games", "b", "idle"), 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStuck(t)
				s.periods(t, owned("games", "a", "idle"), time.Second)
				s.periods(t, tc.target, time.Second)
				expect.Equal(t, "runs began", tc.want, len(s.began))
				close(s.end)
			})
		})
	}
}

func TestProbeRunsAgainWhenTheRuntimeHasEndedTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStuck(t)
		s.periods(t, owned("games", "a", "idle"), 20*time.Second)
		s.end <- struct{}{}
		synctest.Wait()
		s.periods(t, owned("games", "a", "idle"), 2*time.Second)
		expect.Equal(t, "times at which runs began", []time.Duration{0, 20 * time.Second}, s.began)
		close(s.end)
	})
}

// TestRetriesOfUnendedRunsBackOff shows that a runtime that never ends a run gets ever fewer
// of them.
func TestRetriesOfUnendedRunsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStuck(t)
		s.periods(t, owned("games", "a", "idle"), 3*time.Hour)
		var minutes []int
		for _, began := range s.began {
			minutes = append(minutes, int(began.Minutes()))
		}
		expect.Equal(t, "minutes at which runs began", []int{0, 5, 15, 35, 75, 155}, minutes)
		close(s.end)
	})
}

// TestUnendedRunsHaveLimits checks that commands that never end do not accumulate by being edited, and that
// namespaces without such commands run theirs.
func TestUnendedRunsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := &forever{}
		prober := exec.New(runtime, 16, nil)
		defer prober.Close()
		refused := 0
		for namespace := range 20 {
			for command := range 40 {
				target := owned(fmt.Sprint("ns-", namespace), "pod", "probe")
				target.Exec = &probing.Exec{Command: []string{"sleep", fmt.Sprint(command)}}
				if _, err := prober.Probe(t.Context(), target); err != nil {
					refused++
				}
			}
		}
		// 8 namespaces have 32 each, which are 256 together. Each of the other 12 has one.
		if got := prober.Unended(); got != 8*32+12 || int(runtime.runs.Load()) != got || refused != 20*40-got {
			t.Errorf("%d runs have not ended, %d ran, %d were refused", got, runtime.runs.Load(), refused)
		}
	})
}

// forever is a runtime that does not end runs before the prober is closed.
type forever struct{ runs atomic.Int64 }

func (f *forever) ExecSync(ctx context.Context, _ string, _ []string, _ time.Duration) ([]byte, []byte, int32, error) {
	f.runs.Add(1)
	<-ctx.Done()
	return nil, nil, 0, ctx.Err()
}
