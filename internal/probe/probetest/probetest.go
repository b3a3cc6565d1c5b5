// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probetest has the peers that are awkward to make: listeners for the tests of
// the probers.
package probetest

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Refusing returns an address on which nothing listens, and which no other listener or
// client gets while the test runs.
func Refusing(t *testing.T) string {
	t.Helper()
	_, address := Bind(t)
	return address
}

// Bind opens a socket and binds it to a free port of 127.0.0.1, without listening. It
// returns the socket, which the test closes at its end, and its address.
func Bind(t *testing.T) (fd int, address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open a socket: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("bind the socket: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("read the socket's name: %v", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("the socket's name is a %T", name)
	}
	return fd, net.JoinHostPort("127.0.0.1", strconv.Itoa(inet.Port))
}

// Listen opens a listener that the test closes at its end.
func Listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listen on %s: %v", address, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// IPv6 opens a listener on ::1. It is nil, and the test's log says why, on a machine
// without IPv6.
func IPv6(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Logf("no IPv6 on this machine: %v", err)
		return nil
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// Serve has handle answer each connection to a new listener, and returns its address.
// The connections are closed once handled, at the latest when the test ends.
func Serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener := Listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			go func() {
				defer stop()
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// Unanswering returns an address that drops all attempts to connect, as a host that is
// gone does: a listener that accepts nothing and whose queue is full.
func Unanswering(t *testing.T) string {
	t.Helper()
	fd, address := Bind(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatalf("listen on the socket: %v", err)
	}
	const tries = 16
	for range tries {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatalf("the listener took %d connections", tries)
	return ""
}
