// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestSet steps the clock of its own process. `make chaos` builds it with the overlay.
func TestSet(t *testing.T) {
	if _, err := find("/proc/self/exe"); err != nil {
		t.Skip(err)
	}
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		before := time.Now()
		expect.NoError(t, Set(os.Getpid(), step))
		// The system call does not use the clock of the runtime.
		var machine syscall.Timeval
		expect.NoError(t, syscall.Gettimeofday(&machine))
		after := time.Now()
		const most = time.Minute
		if wrong := after.Round(0).Sub(time.Unix(machine.Unix()).Add(step)); wrong.Abs() > most {
			t.Errorf("after a step to %s, the wall clock is wrong by %s", step, wrong)
		}
		if passed := after.Sub(before); passed < 0 || passed > most {
			t.Errorf("a step to %s moves the monotonic clock by %s", step, passed)
		}
	}
}
