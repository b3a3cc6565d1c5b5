// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import "time"

// The limits of the writes to one pod: burst writes at once, then one per fastest. If the marks
// change again right after each write, the interval doubles with each write up to slowest.
const (
	burst   = 5
	fastest = time.Second
	slowest = 30 * time.Second
)

// limit bounds the writes to one pod. It is a token bucket that is refilled only while the pod
// needs no write: marks that change again right after each write, as in a loop of two markers,
// do not refill it, but a pod that changes once per second or less often is never delayed. The
// zero value is a full bucket. A limit has no clock.
type limit struct {
	// spent is how much of the bucket is used, 0 to burst.
	spent float64
	// gap is the interval of writes while the bucket is empty; zero means fastest.
	gap time.Duration
	// wrote is the time of the last write. calm is the time up to which calm is counted.
	wrote, calm time.Time
	// wanted is whether a write is needed. limited is whether a write was delayed and the bucket
	// has not been full again since.
	wanted, limited bool
}

// wait returns how long the write that is needed now must wait. Zero permits the write. first is
// whether this is the first delay of this write.
func (l *limit) wait(now time.Time) (wait time.Duration, first bool) {
	first = !l.wanted
	l.refill(now)
	l.wanted = true
	if l.spent <= burst-1 {
		return 0, false
	}
	wait = max(0, l.wrote.Add(max(l.gap, fastest)).Sub(now))
	l.limited = l.limited || wait > 0
	return wait, first && wait > 0
}

// written records a write that wait permitted.
func (l *limit) written(now time.Time) {
	if l.spent <= burst-1 {
		l.spent++
	} else {
		l.spent = burst
		l.gap = min(2*max(l.gap, fastest), slowest)
	}
	l.wanted, l.wrote, l.calm = false, now, now
}

// settled records that no write is needed, and returns the time until the bucket is full.
func (l *limit) settled(now time.Time) time.Duration {
	l.refill(now)
	l.wanted, l.calm = false, now
	return time.Duration(l.spent * float64(fastest))
}

func (l *limit) refill(now time.Time) {
	if l.wanted {
		return
	}
	l.spent = max(0, l.spent-now.Sub(l.calm).Seconds()/fastest.Seconds())
	l.calm = now
	if l.spent == 0 {
		l.gap, l.limited = 0, false
	}
}
