// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package tcp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/internal/probing/tcp"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func target(address string, timeout time.Duration) probing.Target {
	return probing.Target{Handler: probing.HandlerTCP, Timeout: timeout, TCP: &probing.TCP{Address: address}}
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		address string
		timeout time.Duration
		want    bool
		text    string
	}{
		"accepted":            {address: probetest.Listen(t, "127.0.0.1:0").Addr().String(), timeout: time.Second, want: true},
		"accepted and closed": {address: probetest.Serve(t, func(net.Conn) {}), timeout: time.Second, want: true},
		"refused":             {address: probetest.Refusing(t), timeout: time.Second, text: "connection refused"},
		"no response":         {address: probetest.Unresponsive(t), timeout: 50 * time.Millisecond, text: "i/o timeout"},
		"port 0":              {address: "127.0.0.1:0", timeout: time.Second, text: "connection refused"},
	}
	if listener := probetest.IPv6(t); listener != nil {
		tc := cases["accepted"]
		tc.address = listener.Addr().String()
		cases["accepted on IPv6"] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tcp.New(probing.Dialer()).Probe(t.Context(), target(tc.address, tc.timeout))
			expect.NoError(t, err)
			if got.Success != tc.want || !strings.Contains(got.Message, tc.text) {
				t.Errorf("Probe() = %+v, want success %t and a message with %q", got, tc.want, tc.text)
			}
			expect.Equal(t, "TimedOut", tc.timeout < time.Second, got.TimedOut)
			if tc.want && got.Message != "" {
				t.Errorf("Message = %q, want none", got.Message)
			}
		})
	}
}

func TestProbeClosesConnectionWithoutReset(t *testing.T) {
	ends := make(chan error, 1)
	address := probetest.Serve(t, func(conn net.Conn) {
		_, err := io.ReadAll(conn)
		ends <- err
	})
	got, err := tcp.New(probing.Dialer()).Probe(t.Context(), target(address, time.Second))
	expect.NoError(t, err)
	expect.Equal(t, "Probe()", probing.Outcome{Success: true}, got)
	expect.NoError(t, <-ends)
}

func TestProbeEndsWithItsContext(t *testing.T) {
	stopping := errors.New("agent stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopping)
	if got, err := tcp.New(probing.Dialer()).Probe(ctx, target(probetest.Unresponsive(t), time.Minute)); !errors.Is(err, stopping) {
		t.Errorf("Probe() = %+v, %v, want error %v", got, err, stopping)
	}
}
