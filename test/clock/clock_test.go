// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/clock"
)

func TestSet(t *testing.T) {
	now := time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour, 0} {
		set := clock.Set(now, by)
		if wall := set.Unix() - now.Unix(); wall != int64(by/time.Second) {
			t.Errorf("Set by %s changed the wall clock by %d s", by, wall)
		}
		if passed := set.Add(time.Second).Sub(now); passed != time.Second {
			t.Errorf("Set by %s: a second later is %s later on the monotonic clock", by, passed)
		}
	}
}
