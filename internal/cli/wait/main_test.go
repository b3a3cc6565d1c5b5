// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/runtime"
)

// TestMain starts the goroutine of package os/signal, which must not belong to a bubble of synctest.
func TestMain(m *testing.M) {
	// The default handlers wait until the time of the last error, which is that of the machine or of another bubble.
	runtime.ErrorHandlers = nil
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	os.Exit(m.Run())
}
