// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package ui

import "syscall"

// ownSession changes nothing.
func ownSession() *syscall.SysProcAttr { return nil }
