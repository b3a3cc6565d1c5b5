// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing_test

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestDialerLeavesNoPortInTimeWait closes many connections before the server does, which
// is the worst case for the local ports.
func TestDialerLeavesNoPortInTimeWait(t *testing.T) {
	const rounds = 200
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer listener.Close()
	ends := make(chan error, rounds)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.ReadAll(conn)
				ends <- err
				conn.Close()
			}()
		}
	}()

	ports := map[string]bool{}
	for range rounds {
		conn, err := probing.Dialer().DialContext(t.Context(), "tcp", listener.Addr().String())
		expect.NoError(t, err)
		_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
		ports[port] = true
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatalf("write: %v", err)
		}
		expect.NoError(t, conn.Close())
	}
	for range rounds {
		expect.NoError(t, <-ends)
	}
	if waiting := countWaiting(t, listener.Addr().(*net.TCPAddr).Port); waiting > 0 {
		t.Errorf("%d of %d connections left a port in TIME_WAIT", waiting, len(ports))
	}
}

// countWaiting counts the sockets in TIME_WAIT that were connected to the port.
func countWaiting(t *testing.T, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	expect.NoError(t, err)
	const timeWait = "06"
	count := 0
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[3] == timeWait && strings.HasSuffix(fields[2], hexPort(port)) {
			count++
		}
	}
	return count
}

// hexPort formats a port as in the socket table.
func hexPort(port int) string {
	const digits = "0123456789ABCDEF"
	return ":" + string([]byte{digits[port>>12&15], digits[port>>8&15], digits[port>>4&15], digits[port&15]})
}
