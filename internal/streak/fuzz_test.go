// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/streak"
)

// ledger counts, without looking at the judge, what may have changed its state.
type ledger struct {
	id       string
	running  bool
	success  bool
	row      int
	changed  bool
	outcome  bool
	existed  bool
	policy   streak.Policy
	sequence int
}

// play applies one byte of a script to a judge and to the ledger.
func (l *ledger) play(op byte, s float64) step {
	l.changed, l.outcome = false, op%8 < 3
	switch op % 8 {
	case 0, 1, 2:
		ok := op%8 != 0
		if l.running {
			if l.row > 0 && l.success == ok {
				l.row++
			} else {
				l.success, l.row = ok, 1
			}
		}
		if ok {
			return success(s, "yes")
		}
		return failure(s, "no")
	case 3:
		l.sequence++
		l.id = fmt.Sprint(l.sequence)
		l.running, l.row, l.changed, l.existed = true, 0, true, true
		return running(s, l.id, s)
	case 4:
		l.running, l.row, l.changed, l.existed = false, 0, true, true
		return stopped(s, l.id, "ended")
	case 5:
		l.running, l.row, l.changed = false, 0, l.existed
		return gone(s)
	case 6:
		l.policy.SuccessThreshold = int(op/8)%4 + 1
		l.policy.FailureThreshold = int(op/32)%4 + 1
		return edited(s, l.policy, false)
	default:
		l.row, l.changed = 0, true
		return edited(s, l.policy, true)
	}
}

// FuzzEvaluator plays scripts of outcomes, container changes and edits, and holds the judge
// to the invariants of the package comment.
func FuzzEvaluator(f *testing.F) {
	for _, seed := range []string{
		"\x03\x01\x00\x00\x00", "\x03\x01\x04\x03\x01", "\x03\x01\x07\x00\x01", "\x05\x01\x03\x00\x05\x03",
		"\x03\x0e\x01\x01\x2e\x00\x00\x00\x00", "\x04\x04\x03\x03\x01\x01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		l := &ledger{policy: kubernetes()}
		evaluator := streak.New(l.policy, time.Time{})
		for i, op := range script {
			before := evaluator.State().State
			transition, changed := l.play(op, float64(i))(evaluator)
			after := evaluator.State()
			if changed != (before != after.State) || changed && (transition.From != before || transition.To != after.State) {
				t.Fatalf("step %d: %q to %q was told as %t %+v", i, before, after.State, changed, transition)
			}
			checkCause(t, l, i, before, after)
			if _, due := evaluator.Due(); due != l.running && (due && l.existed || l.running) {
				t.Fatalf("step %d: due %t while running is %t", i, due, l.running)
			}
			if l.existed && !l.running && after.State != failed {
				t.Fatalf("step %d: %q while the container does not run", i, after.State)
			}
		}
	})
}

// checkCause fails where the state moved without a cause, or stayed in spite of one.
func checkCause(t *testing.T, l *ledger, i int, before v1alpha1.ProbeState, after streak.State) {
	t.Helper()
	var met v1alpha1.ProbeState
	switch {
	case !l.running:
	case l.success && l.row >= l.policy.SuccessThreshold:
		met = succeeded
	case !l.success && l.row >= l.policy.FailureThreshold:
		met = failed
	}
	switch {
	case l.outcome && met != none && after.State != met:
		t.Fatalf("step %d: still %q after %d outcomes (%t) in a row", i, after.State, l.row, l.success)
	case before != after.State && !l.changed && after.State != met:
		t.Fatalf("step %d: %q to %q with %d outcomes (%t) in a row", i, before, after.State, l.row, l.success)
	case before != after.State && !after.LastTransition.Equal(at(float64(i))):
		t.Fatalf("step %d: %q to %q at %s", i, before, after.State, after.LastTransition)
	case before != none && after.State == none:
		t.Fatalf("step %d: %q was lost", i, before)
	case before == none && after.State == unknown:
		t.Fatalf("step %d: Unknown without any result before", i)
	}
}
