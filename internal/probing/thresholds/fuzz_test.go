// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"fmt"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

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
