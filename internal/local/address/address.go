// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address leases addresses on the loopback interface to pods. It leases whole
// ranges 127.x.y.0/24 and reserves each with a socket that is bound to its first address.
// Two runs on one machine therefore never share an address, and the range of a process
// that was killed is free again.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

const (
	// guardPort is the port of the socket that reserves a range.
	guardPort = 41797

	// firstBlock is 127.64, which programs rarely use. blocks is the number of ranges from
	// there.
	firstBlock = 64
	blocks     = 64 * 256

	// perBlock is the number of addresses in a range that pods get. They start at 2: the
	// guard has 1.
	perBlock = 253
)

// ErrOnlyOne means that the only loopback address of the system is 127.0.0.1.
var ErrOnlyOne = errors.New("the system has only the loopback address 127.0.0.1")

// Lease holds addresses that no other lease has.
type Lease struct {
	// Addresses are the leased addresses in order.
	Addresses []netip.Addr
	guards    []net.PacketConn
}

// Take leases count addresses. It returns ErrOnlyOne if the system has no such addresses.
func Take(count int) (*Lease, error) { return take(firstBlock<<8, blocks, count) }

// take leases addresses from consecutive ranges. The two bytes of first are the second and
// third byte of the first range's addresses.
func take(first, blocks, count int) (*Lease, error) {
	lease := &Lease{}
	for block := first; block < first+blocks; block++ {
		if len(lease.Addresses) >= count {
			return lease, nil
		}
		x, y := byte(block>>8), byte(block)
		guard, err := net.ListenPacket("udp4", fmt.Sprintf("127.%d.%d.1:%d", x, y, guardPort))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			continue
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, errors.Join(ErrOnlyOne, lease.Close())
		case err != nil:
			return nil, errors.Join(fmt.Errorf("reserve addresses 127.%d.%d.0/24: %w", x, y, err), lease.Close())
		}
		lease.guards = append(lease.guards, guard)
		for host := range min(perBlock, count-len(lease.Addresses)) {
			lease.Addresses = append(lease.Addresses, netip.AddrFrom4([4]byte{127, x, y, byte(host + 2)}))
		}
	}
	if len(lease.Addresses) < count {
		return nil, errors.Join(fmt.Errorf("lease %d loopback addresses: all %d ranges from 127.%d.%d.0 are in use",
			count, blocks, first>>8, first&0xff), lease.Close())
	}
	return lease, nil
}

// Close releases the addresses.
func (l *Lease) Close() error {
	var errs []error
	for _, guard := range l.guards {
		errs = append(errs, guard.Close())
	}
	l.guards = nil
	return errors.Join(errs...)
}
