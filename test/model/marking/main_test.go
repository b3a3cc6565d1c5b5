// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// The jitter of client-go must be the same in each run of a case.
//
//go:debug randseednop=0
package marking

import (
	"os"
	goruntime "runtime"
	"testing"

	"k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// The default handlers log, and wait until the time of the last error, which is that of another bubble.
	runtime.ErrorHandlers = nil
	// Goroutines that are ready at the same time run in the same order.
	goruntime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
