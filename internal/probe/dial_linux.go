// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"syscall"
)

// shortLinger has the kernel forget a closed connection once the peer has confirmed the
// end of the stream, by a reset in place of TIME_WAIT. SO_LINGER, which the kubelet sets
// to a second for the same end, does not shorten TIME_WAIT on Linux; with zero seconds it
// does, but then the peer gets the reset alone and reads an error.
func shortLinger(_, address string, conn syscall.RawConn) error {
	const atOnce = -1
	var err error
	control := func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_LINGER2, atOnce)
	}
	if controlErr := conn.Control(control); controlErr != nil {
		return fmt.Errorf("reach the socket to %s: %w", address, controlErr)
	}
	if err != nil {
		return fmt.Errorf("set the linger time of the socket to %s: %w", address, err)
	}
	return nil
}
