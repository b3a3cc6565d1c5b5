// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares texts with files.
package golden

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/expect"
)

// Compare compares the text with that of the file. With UPDATE_GOLDEN=1 in the environment, it writes
// the file instead.
func Compare(tb testing.TB, file, got string) {
	tb.Helper()
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		expect.NoError(tb, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	expect.NoError(tb, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("the text differs from %s (-want +got); set UPDATE_GOLDEN=1 to accept it:\n%s", file, diff)
	}
}
