// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probetest opens listeners for the tests of the probers, including some that
// refuse or ignore connections.
package probetest

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Refusing returns an address that refuses connections. No other listener or client can
// use its port while the test runs.
func Refusing(t *testing.T) string {
	t.Helper()
	_, address := Bind(t)
	return address
}

// Bind opens a socket and binds it to a free port of 127.0.0.1, without listening. It
// returns the socket and its address. The socket is closed when the test ends.
func Bind(t *testing.T) (fd int, address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open socket: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("bind socket: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("read socket name: %v", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("socket name is a %T", name)
	}
	return fd, net.JoinHostPort("127.0.0.1", strconv.Itoa(inet.Port))
}

// Listen opens a listener. It is closed when the test ends.
func Listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listen on %s: %v", address, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// IPv6 opens a listener on ::1. On a machine without IPv6 it logs the reason and returns
// nil.
func IPv6(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Logf("IPv6 is not available: %v", err)
		return nil
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// Serve opens a listener, calls handle for each connection, and returns its address. A
// connection is closed when handle returns or the test ends.
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

// Unresponsive returns an address that drops all attempts to connect, as if the host were
// gone. It is a listener that does not accept connections and whose queue is full.
func Unresponsive(t *testing.T) string {
	t.Helper()
	fd, address := Bind(t)
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatalf("listen on socket: %v", err)
	}
	const attempts = 16
	for range attempts {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatalf("listener accepted %d connections", attempts)
	return ""
}
