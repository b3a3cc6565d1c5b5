// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets many tests wait for their timeouts in parallel, even with few cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, "set the number of parallel tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
