// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ui

import "syscall"

// ownSession keeps the signals of the terminal from a process: Ctrl-C does not end the browser.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
