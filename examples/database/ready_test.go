// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestNotReadyWhileTheRoleMoves announces a successor while other replicas start. db-8 does not exist, so
// the role does not move to it.
func TestNotReadyWhileTheRoleMoves(t *testing.T) {
	for successor, want := range map[string][2]time.Duration{
		// Ready after the role has moved and settled: at least 3 s each.
		"db-1": {5 * time.Second, 12 * time.Second},
		// The successor itself is ready when it has caught up.
		"db-2": {2 * time.Second, 6 * time.Second},
		"db-8": {19 * time.Second, 23 * time.Second},
	} {
		t.Run(successor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{updating: "db-8"}
				started(t, "db-0", m)
				synctest.Wait()
				started(t, "db-1", m)
				<-time.After(10*time.Second + time.Millisecond)
				m.record.successor = successor
				m.record.version += "x"
				starting, _ := started(t, "db-2", m)
				for i, ready := range []bool{false, true} {
					<-time.After(want[i] - time.Duration(i)*want[0])
					synctest.Wait()
					expect.Equal(t, fmt.Sprintf("after %s: ready", want[i]), ready, starting.snapshot().joined)
				}
			})
		})
	}
}
