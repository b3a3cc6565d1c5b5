// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets many tests wait for their timeouts at once, however few cores there are.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, "set how many tests run at once:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
