// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownGroup makes a process the leader of a new group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownSession puts a process in a new session, which the terminal's signals do not reach.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// catchSignals makes the reaper survive signals, so that it ends only with the pipe. Its
// children would inherit signals that it ignored.
func catchSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

// signalGroup signals a group. It returns false if the group has ended.
func signalGroup(group int, sig syscall.Signal) bool { return syscall.Kill(-group, sig) == nil }

// signalProcess signals a process. It fails only if the process has ended.
func signalProcess(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }

// reapChild waits for a child that has ended.
func reapChild(pid int) { _, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) }

// reapChildren waits for all children that have ended, and reports whether others remain.
func reapChildren() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD || pid == 0 {
			return err == nil
		}
	}
}

func exitOf(state *os.ProcessState, at time.Time) Exit {
	exit := Exit{Code: int32(state.ExitCode()), At: at}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int32(status.Signal())
		exit.Code = signalBase + exit.Signal
	}
	return exit
}

// socketPair returns two connected sockets that can transfer files. Children inherit neither.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create socket: %w", err)
	}
	return inherited(pair[0]), inherited(pair[1]), nil
}

// inherited returns the file of a descriptor that the children of this process shall not
// inherit.
func inherited(descriptor int) *os.File {
	unix.CloseOnExec(descriptor)
	return os.NewFile(uintptr(descriptor), "")
}

// sendFiles sends two files over a socket.
func sendFiles(socket *os.File, files [2]*os.File) error {
	rights := unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()))
	if err := unix.Sendmsg(int(socket.Fd()), []byte{0}, rights, nil, 0); err != nil {
		return fmt.Errorf("send files: %w", err)
	}
	return nil
}

// receiveFiles receives the files of one call of sendFiles. No process may be started meanwhile.
func receiveFiles(socket *os.File) (files [2]*os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(len(files)*4))
	_, n, _, _, err := unix.Recvmsg(int(socket.Fd()), []byte{0}, rights, 0)
	if err != nil {
		return files, fmt.Errorf("receive files: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return files, fmt.Errorf("receive files: %d messages: %w", len(messages), err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	for i := range min(len(descriptors), len(files)) {
		files[i] = inherited(descriptors[i])
	}
	return files, err
}
