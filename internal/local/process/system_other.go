// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os"
	"syscall"
	"time"
)

// Without process groups, signals go to single processes.

func ownGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr { return nil }

func ignoreSignals() {}

func signalGroup(group int, sig syscall.Signal) { signalProcess(group, sig) }

func signalProcess(pid int, _ syscall.Signal) {
	if process, err := os.FindProcess(pid); err == nil {
		// It fails only if the process has ended.
		_ = process.Kill()
	}
}

func exitOf(state *os.ProcessState, at time.Time) Exit {
	return Exit{Code: int32(state.ExitCode()), At: at}
}
