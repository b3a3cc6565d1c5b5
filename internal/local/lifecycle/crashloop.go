// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

const (
	// DefaultCrashLoopInitial is the kubelet's first delay before a restart.
	DefaultCrashLoopInitial = 10 * time.Second
	// DefaultCrashLoopMax is the kubelet's maximum delay before a restart.
	DefaultCrashLoopMax = 5 * time.Minute

	// crashLoopReset is how long a container must run after a restart for the delay to
	// start over.
	crashLoopReset = 10 * time.Minute
)

// CrashLoop bounds the delay before a container that keeps exiting restarts. Zero fields
// mean the kubelet's values. An initial delay above the maximum means the maximum.
type CrashLoop struct {
	// Initial is the first delay, Max the longest.
	Initial, Max time.Duration
}

// backOff is the kubelet's crash-loop back-off of the containers of one pod: the first
// restart is immediate, and each later one waits twice as long as the one before, counted
// from the exit of the container. It is the implementation that the kubelet uses, with the
// time passed in by the caller.
type backOff struct {
	delays *flowcontrol.Backoff
	clock  *callerClock
}

// callerClock returns the time that the caller passed in.
type callerClock struct {
	clock.RealClock
	now time.Time
}

// Now returns the caller's time.
func (c *callerClock) Now() time.Time { return c.now }

// Since returns the time since t by the caller's time.
func (c *callerClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

func newBackOff(crashLoop CrashLoop) *backOff {
	longest := cmp.Or(max(crashLoop.Max, 0), DefaultCrashLoopMax)
	initial := min(cmp.Or(max(crashLoop.Initial, 0), DefaultCrashLoopInitial), longest)
	b := &backOff{delays: flowcontrol.NewBackOff(initial, longest), clock: &callerClock{}}
	b.delays.Clock = b.clock
	b.delays.HasExpiredFunc = func(finished, restarted time.Time, _ time.Duration) bool {
		return finished.Sub(restarted) > crashLoopReset
	}
	return b
}

// until returns when a container that exited at finished may restart. That is finished
// itself if there is no delay.
func (b *backOff) until(container string, finished time.Time) time.Time {
	b.clock.now = finished
	if !b.delays.IsInBackOffSince(container, finished) {
		return finished
	}
	return finished.Add(b.delays.Get(container))
}

// restarted records that a container that exited at finished is restarted at now.
func (b *backOff) restarted(container string, finished, now time.Time) {
	b.clock.now = now
	b.delays.Next(container, finished)
}
