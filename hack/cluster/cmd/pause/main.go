// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Pause keeps the namespaces of a pod open. It reaps orphans and runs until it gets a signal.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap reaps all children that have ended. In a shared process namespace, this is process 1, and one signal
// may be sent for several children.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}
