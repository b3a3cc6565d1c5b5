//go:build !linux

// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import "syscall"

// shortLinger does nothing: agents run on Linux.
func shortLinger(_, _ string, _ syscall.RawConn) error { return nil }
