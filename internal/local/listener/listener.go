// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listener finds the processes that listen on TCP ports of this machine. It needs
// the /proc of Linux; on other systems it finds none.
package listener

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listener is a listening TCP socket.
type Listener struct {
	// Address is the address and the port. The address can be unspecified (0.0.0.0 or ::).
	Address netip.AddrPort
	// User is the ID of the user who opened the socket.
	User int
	// Inode identifies the socket.
	Inode string
}

// Parse parses the listening sockets from the contents of /proc/net/tcp or tcp6. It skips
// lines in another format.
func Parse(content []byte) []Listener {
	const local, state, user, inode, listen = 1, 3, 7, 9, "0A"
	var found []Listener
	for line := range bytes.Lines(content) {
		fields := strings.Fields(string(line))
		if len(fields) <= inode || fields[state] != listen {
			continue
		}
		address, ok := parseAddress(fields[local])
		uid, err := strconv.Atoi(fields[user])
		if ok && err == nil {
			found = append(found, Listener{Address: address, User: uid, Inode: fields[inode]})
		}
	}
	return found
}

// parseAddress parses an address such as 0100007F:1F90: words of four bytes, each in the
// byte order of the machine, and the port.
func parseAddress(text string) (netip.AddrPort, bool) {
	address, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	// All supported machines are little-endian.
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number)), ok
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
