// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

type fault int

const (
	noFault fault = iota
	failedWrite
	lostAnswer
	crashBefore
	crashAfter
)

// fault decides what happens to the next write of a leader, and lets events happen before it.
func (w *World) fault(l *leader) fault {
	if !w.chaos {
		return noFault
	}
	w.between(l)
	f := w.faults
	switch n := w.Rand.Float64(); {
	case n < f.Fail:
		return failedWrite
	case n < f.Fail+f.Lose:
		return lostAnswer
	case n < f.Fail+f.Lose+f.Crash/2:
		return crashBefore
	case n < f.Fail+f.Lose+f.Crash:
		return crashAfter
	}
	return noFault
}
