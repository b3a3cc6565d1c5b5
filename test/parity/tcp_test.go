// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestTCP connects to ports that accept connections and to ports that do not.
func TestTCP(t *testing.T) {
	serve := func(handle func(net.Conn)) func(*testing.T) *peer {
		return silent(func(t *testing.T) string { return probetest.Serve(t, handle) })
	}
	unread := silent(func(t *testing.T) string { return probetest.Listen(t, "127.0.0.1:0").Addr().String() })
	cases := map[string]struct {
		serve   func(*testing.T) *peer
		timeout time.Duration
		want    conclusion
	}{
		"waits for the client":      {serve(func(c net.Conn) { linger(c, nil, 0) }), ample, success},
		"closes at once":            {short(), ample, success},
		"sends a greeting":          {serve(func(c net.Conn) { _, _ = c.Write([]byte("hello")) }), ample, success},
		"never accepts":             {unread, ample, success},
		"HTTP":                      {wire(say(ok)), ample, success},
		"on IPv6":                   {onIPv6, ample, success},
		"refused":                   {refusing(), ample, failure},
		"refused on IPv6":           {silent(refusing6), ample, failure},
		"host that does not answer": {unanswering(), 300 * time.Millisecond, failure},
		"timeout of 1 ns":           {unanswering(), time.Nanosecond, failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, tcpSocket(), tc.serve, tc.timeout, tc.want, verbatim)
		})
	}
}

// refusing6 returns a bound port of ::1 that nothing listens on, or one of 127.0.0.1 if the machine
// has no IPv6.
func refusing6(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return probetest.Refusing(t)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet6{Addr: netip.IPv6Loopback().As16()}); err != nil {
		return probetest.Refusing(t)
	}
	name, err := syscall.Getsockname(fd)
	expect.NoError(t, err)
	inet, ok := name.(*syscall.SockaddrInet6)
	if !ok {
		t.Fatalf("the socket's name is a %T", name)
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), uint16(inet.Port)).String()
}
