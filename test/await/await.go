// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await polls for conditions in tests.
package await

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeout is how long a test waits for a condition by default. Only a hang reaches it.
const Timeout = time.Minute

// Poll is how often a condition is checked, and for how long.
type Poll struct{ Interval, Timeout time.Duration }

// Until polls with the default interval and timeout. See [Poll.Until].
func Until(tb testing.TB, what string, missing func(context.Context) (string, error)) {
	tb.Helper()
	Poll{Interval: 20 * time.Millisecond, Timeout: Timeout}.Until(tb, what, missing)
}

// Until waits until missing returns an empty string. It fails the test on an error, or on
// the timeout with the last string, which describes what is still missing.
func (p Poll) Until(tb testing.TB, what string, missing func(context.Context) (string, error)) {
	tb.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(tb.Context(), p.Interval, p.Timeout, true, func(ctx context.Context) (bool, error) {
		state, err := missing(ctx)
		if state != "" {
			last = state
		}
		return state == "", err
	})
	if err != nil {
		tb.Fatalf("waited for %q: %v; last state: %s", what, err, last)
	}
}

// Success waits until check returns nil. It fails the test with the last error on the
// timeout.
func (p Poll) Success(tb testing.TB, what string, check func(context.Context) error) {
	tb.Helper()
	p.Until(tb, what, func(ctx context.Context) (string, error) { return textOf(check(ctx)), nil })
}

// textOf returns the text of an error, and nothing for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error()
}

// ErrorIf returns an error with the state if the condition holds, as a check of Success does.
func ErrorIf(condition bool, format string, args ...any) error {
	if condition {
		return fmt.Errorf(format, args...)
	}
	return nil
}
