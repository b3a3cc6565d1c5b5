// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ownGroup makes a process the leader of a group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownSession takes a process out of reach of the terminal's signals.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals leaves the reaper only the pipe to end by.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

// signalGroup signals a group. One that has gone is as good as signalled.
func signalGroup(group int, sig syscall.Signal) { _ = syscall.Kill(-group, sig) }

// signalProcess signals a process. One that has gone is as good as signalled.
func signalProcess(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }

func exitOf(state *os.ProcessState, at time.Time) Exit {
	exit := Exit{Code: int32(state.ExitCode()), At: at}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int32(status.Signal())
		exit.Code = signalBase + exit.Signal
	}
	return exit
}
