// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address gives pods addresses of their own on the loopback interface. It hands
// out whole ranges 127.x.y.0/24, each held by a socket that is bound in it, so that two
// runs on one machine never share an address, and a range is free again however its
// holder ends.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

const (
	// guardPort is the port of the socket that holds a range, at its first address.
	guardPort = 41797

	// firstBlock is 127.64, far from what programs on the machine use by themselves, and
	// blocks is how many ranges there are from there.
	firstBlock = 64
	blocks     = 64 * 256

	// perBlock are the addresses of a range that pods get: from 2, as 1 is the guard's.
	perBlock = 253
)

// ErrOnlyOne says that the system has no loopback address but 127.0.0.1.
var ErrOnlyOne = errors.New("the system has no loopback address but 127.0.0.1")

// Lease is a number of addresses that nobody else has.
type Lease struct {
	// Addresses are what was asked for, in order.
	Addresses []netip.Addr
	guards    []net.PacketConn
}

// Take leases as many addresses as asked for. The error is ErrOnlyOne where the system
// has no such addresses.
func Take(count int) (*Lease, error) { return take(firstBlock<<8, blocks, count) }

// take takes addresses from so many ranges, of which first has the number of the two bytes
// in its middle.
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
			return nil, errors.Join(fmt.Errorf("hold the addresses 127.%d.%d.0/24: %w", x, y, err), lease.Close())
		}
		lease.guards = append(lease.guards, guard)
		for host := range min(perBlock, count-len(lease.Addresses)) {
			lease.Addresses = append(lease.Addresses, netip.AddrFrom4([4]byte{127, x, y, byte(host + 2)}))
		}
	}
	if len(lease.Addresses) < count {
		return nil, errors.Join(fmt.Errorf("take %d loopback addresses: all %d ranges from 127.%d.%d.0 are taken",
			count, blocks, first>>8, first&0xff), lease.Close())
	}
	return lease, nil
}

// Close gives the addresses back.
func (l *Lease) Close() error {
	var errs []error
	for _, guard := range l.guards {
		errs = append(errs, guard.Close())
	}
	l.guards = nil
	return errors.Join(errs...)
}
