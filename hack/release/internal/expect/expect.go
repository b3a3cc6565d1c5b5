// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect has the checks that the tests repeat. This module does not depend on the one with test/expect.
package expect

import (
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

// Equal fails the test if the values differ. What names them in the message.
func Equal[T any](tb testing.TB, what string, want, got T) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
