// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listener finds the processes that listen on TCP ports of this machine. It needs
// the /proc of Linux; on other systems it finds none.
package listener

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"
)

// stateListen is the state of a listening socket in /proc/net/tcp.
const stateListen = 0x0A

// Listener is a listening TCP socket.
type Listener struct {
	// Address is the address and the port. The address can be unspecified (0.0.0.0 or ::).
	Address netip.AddrPort
	// User is the ID of the user who opened the socket.
	User int
	// Inode identifies the socket.
	Inode uint64
}

// All returns all listeners.
func All() ([]Listener, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, nil //nolint:nilerr // The system has no /proc.
	}
	var all []Listener
	for _, read := range []func() (procfs.NetTCP, error){proc.NetTCP, proc.NetTCP6} { //nolint:staticcheck // Two files need no netlink.
		sockets, err := read()
		// The system may lack one of the protocols.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list listeners: %w", err)
		}
		for _, socket := range sockets {
			if address, ok := netip.AddrFromSlice(socket.LocalAddr); ok && socket.St == stateListen {
				all = append(all, Listener{
					Address: netip.AddrPortFrom(address.Unmap(), uint16(socket.LocalPort)), User: int(socket.UID), Inode: socket.Inode,
				})
			}
		}
	}
	return all, nil
}

// MayOwn reports whether a process has the listener open, or can't be inspected.
func MayOwn(pid int, l Listener) bool {
	owns, err := owns(pid, l)
	return owns || err != nil && !errors.Is(err, fs.ErrNotExist)
}

func owns(pid int, l Listener) (bool, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return false, err
	}
	targets, err := process.FileDescriptorTargets()
	return slices.Contains(targets, fmt.Sprintf("socket:[%d]", l.Inode)), err
}

// Owners returns the processes that have the listener open, as far as they can be seen.
func Owners(l Listener) []Process {
	// There are none without /proc.
	processes, _ := procfs.AllProcs()
	var owners []Process
	for _, process := range processes {
		if owns, _ := owns(process.PID, l); owns {
			// It is empty if the process has just ended.
			name, _ := process.Comm()
			owners = append(owners, Process{PID: process.PID, User: l.User, Name: name})
		}
	}
	return owners
}

// Answering returns the listeners that get the connections to an address: those on exactly
// this address, otherwise those on all addresses. A listener on all IPv4 addresses gets IPv4
// connections before one on all IPv6 addresses.
func Answering(all []Listener, target netip.AddrPort) []Listener {
	var exact, wildcard []Listener
	for _, l := range all {
		switch {
		case l.Address.Port() != target.Port():
		case l.Address.Addr() == target.Addr().Unmap():
			exact = append(exact, l)
		case l.Address.Addr().IsUnspecified():
			wildcard = append(wildcard, l)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	sameFamily := slices.DeleteFunc(slices.Clone(wildcard), func(l Listener) bool {
		return l.Address.Addr().Is4() != target.Addr().Unmap().Is4()
	})
	if len(sameFamily) > 0 {
		return sameFamily
	}
	return wildcard
}

// Process is the owner of a listening socket.
type Process struct {
	// PID is 0 if the process can't be seen, for example because it belongs to another
	// user. User is then the ID of the user.
	PID, User int
	// Name is the name of the program.
	Name string
}

// String names the process.
func (p Process) String() string {
	if p.PID == 0 {
		return fmt.Sprintf("a process of user %d", p.User)
	}
	return fmt.Sprintf("process %s (PID %d)", p.Name, p.PID)
}
