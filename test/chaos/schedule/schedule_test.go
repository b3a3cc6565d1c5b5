// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/chaos/schedule"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	faults := []string{"a", "b", "c", "d", "e"}
	one, three := schedule.Draw(1, faults, 1), schedule.Draw(1, faults, 3)
	expect.Equal(t, "more rounds change the first one (-one +three)", one, three[:len(one)])
	for round := range 3 {
		var names []string
		for _, turn := range three[round*len(faults) : (round+1)*len(faults)] {
			names = append(names, turn.Fault)
		}
		slices.Sort(names)
		if !slices.Equal(names, faults) {
			t.Errorf("round %d has the faults %q", round, names)
		}
	}
	if cmp.Equal(three, schedule.Draw(2, faults, 3)) {
		t.Error("two seeds draw the same turns")
	}
	first, users := three[0].Random()
	again, _ := three[0].Random()
	for range 100 {
		d := schedule.Between(first, time.Second, 2*time.Second)
		if d < time.Second || d > 2*time.Second {
			t.Errorf("duration %s is not within the bounds", d)
		}
		// What users do does not change the parameters.
		users.Int()
		if d != schedule.Between(again, time.Second, 2*time.Second) {
			t.Error("the same turn has two parameters")
		}
	}
}
