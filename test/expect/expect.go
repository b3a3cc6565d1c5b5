// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect has the checks that most tests repeat.
package expect

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// NoError ends the test if there is an error.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// NoErrorf ends the test if there is an error. The format says what was attempted.
func NoErrorf(tb testing.TB, err error, format string, args ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// Equal reports how got differs from want. The format says what is compared.
func Equal[T any](tb testing.TB, want, got T, format string, args ...any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}

// Success reports an error, and lets the test go on.
func Success(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}
