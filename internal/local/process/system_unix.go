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

// ownGroup makes a process the leader of a new group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownSession puts a process in a new session, which the terminal's signals do not reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ignoreSignals makes the reaper ignore signals, so that it ends only with the pipe.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

// signalGroup signals a group. It fails only if the group has ended.
func signalGroup(group int, sig syscall.Signal) { _ = syscall.Kill(-group, sig) }

// signalProcess signals a process. It fails only if the process has ended.
func signalProcess(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }

func exitOf(state *os.ProcessState, at time.Time) Exit {
	exit := Exit{Code: int32(state.ExitCode()), At: at}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int32(status.Signal())
		exit.Code = signalBase + exit.Signal
	}
	return exit
}
