// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRestoredContainerID checks that the ID of the container decides whether a restored state
// still applies, whatever the times are.
func TestRestoredContainerID(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4)
	cases := map[string]struct {
		reported string
		step     step
		want     []string
	}{
		"same container":                        {"a", running(0, "a", -900), nil},
		"same container, wall clock set back":   {"a", running(0, "a", 900), nil},
		"container replaced in the same second": {"a", running(0, "b", -600), []string{"Succeeded>Unknown"}},
		"container replaced, wall clock set":    {"a", running(0, "b", -9000), []string{"Succeeded>Unknown"}},
		"same container ended":                  {"a", stopped(0, "a", "exited"), []string{"Succeeded>Failed"}},
		"container removed":                     {"a", gone(0), []string{"Succeeded>Failed"}},
		"shortened ID":                          {long[:13], running(0, long, 900), nil},
		"prefix of another ID":                  {"c1", running(0, "c10", -900), []string{"Succeeded>Unknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := reported(succeeded)
			start.ContainerID = tc.reported
			expect.Equal(t, "transitions", tc.want, transitionsOf(thresholds.Restore(kubernetes(), thresholds.Phase{}, start), tc.step))
		})
	}
}

// TestMovedState checks a state that a probe brings along from another container.
func TestMovedState(t *testing.T) {
	cases := map[string]struct {
		steps []step
		want  []string
	}{
		"new container runs":           {[]step{running(0, "b", -1)}, nil},
		"results below the threshold":  {[]step{running(0, "b", -1), failure(1, "1"), failure(2, "2")}, nil},
		"results reach the threshold":  {[]step{running(0, "b", -1), failure(1, "1"), failure(2, "2"), failure(3, "3")}, []string{"Succeeded>Failed"}},
		"new container has ended":      {[]step{stopped(0, "b", "exited")}, []string{"Succeeded>Failed"}},
		"new container has not run":    {[]step{gone(0)}, nil},
		"new container starts later":   {[]step{gone(0), running(1, "b", 1)}, nil},
		"new container is replaced":    {[]step{running(0, "b", -1), running(1, "c", 1)}, []string{"Succeeded>Unknown"}},
		"container removed after runs": {[]step{running(0, "b", -1), gone(1)}, []string{"Succeeded>Failed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := thresholds.New(kubernetes(), thresholds.Phase{})
			state := reported(succeeded)
			state.ContainerID = "a"
			e.Move(state)
			expect.Equal(t, "transitions", tc.want, transitionsOf(e, tc.steps...))
			if due, ok := e.Due(); e.Container().Running != ok || due.After(at(1)) {
				t.Errorf("due at %s, %t, want at once if the container runs", due, ok)
			}
		})
	}
}

func transitionsOf(e *thresholds.Evaluator, steps ...step) []string {
	var got []string
	for _, s := range steps {
		if transition, changed := s(e); changed {
			got = append(got, string(transition.From)+">"+string(transition.To))
		}
	}
	return got
}

// FuzzRestore plays a script, restores the reported form of the state at its end, and checks
// that the agent continues in the same run of the container and starts again in another.
func FuzzRestore(f *testing.F) {
	for _, seed := range []string{"\x03\x01", "\x03\x01\x03", "\x03\x01\x04\x03\x01", "\x03\x01\x06\x01", "\x03\x00\x00\x00\x03\x03"} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, script []byte, withID bool) {
		m := &model{policy: kubernetes()}
		before := thresholds.New(m.policy, thresholds.Phase{})
		for i, op := range script {
			m.play(op, float64(i))(before)
		}
		state, run := before.State(), before.Container()
		if !run.Running || state.State == none {
			return
		}
		state.LastProbe = state.LastProbe.Truncate(time.Second)
		state.LastTransition = state.LastTransition.Truncate(time.Second)
		if !withID {
			state.ContainerID = ""
		}
		now := at(float64(len(script)) + 10)
		same := thresholds.Restore(m.policy, thresholds.Phase{}, state)
		if transition, changed := same.ContainerChanged(now, run); changed && state.State != unknown {
			t.Errorf("the same run caused %s to %s", transition.From, transition.To)
		}
		run.ID, run.StartedAt = "other", now.Add(-time.Second)
		other := thresholds.Restore(m.policy, thresholds.Phase{}, state)
		other.ContainerChanged(now, run)
		expect.Equal(t, "another run has the state", unknown, other.State().State)
	})
}

// model tracks the expected causes of state changes, independently of the evaluator.
type model struct {
	id       string
	running  bool
	success  bool
	count    int
	changed  bool
	outcome  bool
	existed  bool
	policy   thresholds.Policy
	sequence int
}

// play updates the model with one byte of a script and returns the step for the evaluator.
func (m *model) play(op byte, s float64) step {
	m.changed, m.outcome = false, op%8 < 3
	switch op % 8 {
	case 0, 1, 2:
		ok := op%8 != 0
		if m.running {
			if m.count > 0 && m.success == ok {
				m.count++
			} else {
				m.success, m.count = ok, 1
			}
		}
		if ok {
			return success(s, "yes")
		}
		return failure(s, "no")
	case 3:
		m.sequence++
		m.id = fmt.Sprint(m.sequence)
		m.running, m.count, m.changed, m.existed = true, 0, true, true
		return running(s, m.id, s)
	case 4:
		m.running, m.count, m.changed, m.existed = false, 0, true, true
		return stopped(s, m.id, "ended")
	case 5:
		m.running, m.count, m.changed = false, 0, m.existed
		return gone(s)
	case 6:
		m.policy.SuccessThreshold = int(op/8)%4 + 1
		m.policy.FailureThreshold = int(op/32)%4 + 1
		m.count = 0
		return edited(s, m.policy)
	default:
		m.count = 0
		return edited(s, m.policy)
	}
}

// FuzzEvaluator plays scripts of outcomes, container changes and edits. It checks the
// invariants in the package comment.
func FuzzEvaluator(f *testing.F) {
	for _, seed := range []string{
		"\x03\x01\x00\x00\x00", "\x03\x01\x04\x03\x01", "\x03\x01\x07\x00\x01", "\x05\x01\x03\x00\x05\x03",
		"\x03\x0e\x01\x01\x2e\x00\x00\x00\x00", "\x04\x04\x03\x03\x01\x01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		m := &model{policy: kubernetes()}
		evaluator := thresholds.New(m.policy, thresholds.Phase{})
		for i, op := range script {
			before := evaluator.State().State
			transition, changed := m.play(op, float64(i))(evaluator)
			after := evaluator.State()
			if changed != (before != after.State) || changed && (transition.From != before || transition.To != after.State) {
				t.Fatalf("step %d: %q to %q returned %t, %+v", i, before, after.State, changed, transition)
			}
			checkCause(t, m, i, before, after)
			if _, due := evaluator.Due(); due != m.running {
				t.Fatalf("step %d: due = %t while running = %t", i, due, m.running)
			}
			if m.existed && !m.running && after.State != failed {
				t.Fatalf("step %d: state = %q while the container does not run", i, after.State)
			}
			if !m.existed && after != (thresholds.State{}) {
				t.Fatalf("step %d: state = %+v before the container has run", i, after)
			}
		}
	})
}

// checkCause fails if the state changed without a cause or did not change despite one.
func checkCause(t *testing.T, m *model, i int, before v1alpha1.ProbeState, after thresholds.State) {
	t.Helper()
	var met v1alpha1.ProbeState
	switch {
	case !m.running:
	case m.success && m.count >= m.policy.SuccessThreshold:
		met = succeeded
	case !m.success && m.count >= m.policy.FailureThreshold:
		met = failed
	}
	switch {
	case m.outcome && met != none && after.State != met:
		t.Fatalf("step %d: state still %q after %d equal outcomes (%t)", i, after.State, m.count, m.success)
	case before != after.State && !m.changed && after.State != met:
		t.Fatalf("step %d: %q to %q after %d equal outcomes (%t)", i, before, after.State, m.count, m.success)
	case before != after.State && !after.LastTransition.Equal(at(float64(i))):
		t.Fatalf("step %d: %q to %q has the transition time %s", i, before, after.State, after.LastTransition)
	case before != none && after.State == none:
		t.Fatalf("step %d: %q was lost", i, before)
	case before == none && after.State == unknown:
		t.Fatalf("step %d: Unknown without an earlier result", i)
	}
}
