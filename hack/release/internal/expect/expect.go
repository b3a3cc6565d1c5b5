// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect has the checks that the tests repeat.
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

// Equal reports how got differs from want. The format says what is compared.
func Equal[T any](tb testing.TB, want, got T, format string, args ...any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprintf(format, args...), diff)
	}
}
