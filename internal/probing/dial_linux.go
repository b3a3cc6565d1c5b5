// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"fmt"
	"syscall"
)

// shortLinger makes the kernel skip TIME_WAIT once the peer has confirmed the end of the
// stream. The kubelet sets SO_LINGER to one second for the same purpose, but on Linux that
// does not shorten TIME_WAIT. SO_LINGER with zero seconds does, but then the peer receives
// only a reset and reads an error.
func shortLinger(_, address string, conn syscall.RawConn) error {
	const immediately = -1
	var err error
	control := func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_LINGER2, immediately)
	}
	if controlErr := conn.Control(control); controlErr != nil {
		return fmt.Errorf("access socket to %s: %w", address, controlErr)
	}
	if err != nil {
		return fmt.Errorf("set linger time of socket to %s: %w", address, err)
	}
	return nil
}
