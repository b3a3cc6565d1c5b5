// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
)

const (
	// lateAfter is how many periods a run may wait for a slot before it is late.
	lateAfter = 3

	messageNotEnded = "the container runtime has not ended an earlier run, for example because a child process keeps its output open"
)

// lateAt returns when a run becomes late. It returns false if the run is late, has started,
// or was cancelled.
func (f *flight) lateAt(period time.Duration) (time.Time, bool) {
	return f.began.Add(lateAfter * period), !f.started.Load() && !f.late && !f.stale
}

// late handles a run that waits too long for a slot.
func (l *loop) late(now time.Time, e *entry, f *flight) {
	if f.late = !f.started.Load(); f.late {
		_, target := e.gate()
		e.troubled(now, f, v1alpha1.ProbeWaitingForSlot, messageLate(target.Handler))
		l.announce(e, nil)
	}
}

// troubled sets the problem of a probe, or of the startup probe for which it waits.
func (e *entry) troubled(now time.Time, f *flight, reason v1alpha1.ProbeErrorReason, message string) {
	if f.startup {
		message = probing.Message([]byte("startup probe: " + message))
	}
	e.evaluator.Troubled(now, reason, message)
}

// messageLate says which slots a late run waits for.
func messageLate(handler probing.Handler) string {
	kind := "a network"
	if handler == probing.HandlerExec {
		kind = "an exec"
	}
	return fmt.Sprintf("the probe has not run for %d periods: it waits for %s slot of the node", lateAfter, kind)
}

// updateProblem sets or clears the problem of a probe after a run. A late run keeps the
// problem although it has a result, so that a node that is overloaded all the time does not
// report and clear the problem with every run.
func (l *loop) updateProblem(now time.Time, e *entry, f *flight, run Run) {
	switch {
	case unavailable(run.Err):
		// This is a problem of the runtime, not of the probe.
	case run.Err != nil:
		e.troubled(now, f, v1alpha1.ProbeCannotRun, Reason(run.Err))
	case run.Outcome.NotEnded:
		e.troubled(now, f, v1alpha1.ProbeNotEnded, messageNotEnded)
	case f.late:
		e.troubled(now, f, v1alpha1.ProbeWaitingForSlot, messageLate(run.Handler))
	case now.Before(e.slowed.until):
		e.troubled(now, f, v1alpha1.ProbeRateLimited, messageSlowed(e.slowed.by, l.options.Limits))
	default:
		e.evaluator.Untroubled()
	}
}

// unavailable reports whether an error means that the container runtime did not answer.
func unavailable(err error) bool {
	var runtime interface{ Unavailable() bool }
	return errors.As(err, &runtime) && runtime.Unavailable()
}

// Reason returns why a command could not be run: the part of the runtime's error that does
// not depend on the run, valid UTF-8 of at most probing.MaxMessageBytes.
func Reason(err error) string {
	reason := err.Error()
	for _, context := range []string{"run command in container ", "exec in container "} {
		if rest, found := strings.CutPrefix(reason, context); found {
			_, reason, _ = strings.Cut(rest, ": ")
		}
	}
	for _, context := range []string{"desc = ", "OCI runtime exec failed: exec failed: ", "unable to start container process: "} {
		if at := strings.LastIndex(reason, context); at >= 0 {
			reason = reason[at+len(context):]
		}
	}
	reason = strings.TrimSuffix(strings.TrimSpace(reason), ": unknown")
	return probing.Message([]byte(withoutIDs(reason)))
}

// withoutIDs replaces the IDs of containers and of their runs, which are hexadecimal and
// long, with "...".
func withoutIDs(s string) string {
	const minLength = 32
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
	var out strings.Builder
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && isHex(s[end]) {
			end++
		}
		switch {
		case end-i >= minLength:
			out.WriteString("...")
		case end > i:
			out.WriteString(s[i:end])
		default:
			end++
			out.WriteByte(s[i])
		}
		i = end
	}
	return out.String()
}
