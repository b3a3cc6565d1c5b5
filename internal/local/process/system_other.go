// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Without process groups, no keeper can start: socketPair fails.

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func inherited(int) *os.File { return nil }

func sendFiles(*os.File, [2]*os.File) error { return errors.ErrUnsupported }

func receiveFiles(*os.File) (files [2]*os.File, err error) { return files, errors.ErrUnsupported }

func ownGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr { return nil }

func catchSignals() {}

func signalGroup(int, syscall.Signal) bool { return false }

func signalProcess(int, syscall.Signal) {}

func reapChild(int) {}

func reapChildren() bool { return false }

func exitOf(*os.ProcessState, time.Time) Exit { return Exit{} }
