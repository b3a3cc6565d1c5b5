// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
)

// silence returns servers that never complete a response, by what is missing.
func silence() map[string]struct {
	spec  *corev1.Probe
	serve func(*testing.T) *peer
	// runs is how many times each side runs the probe. Each run takes one timeout.
	runs int
} {
	unresponsive := silent(func(t *testing.T) string {
		return probetest.Serve(t, func(conn net.Conn) { linger(conn, nil, 0) })
	})
	return map[string]struct {
		spec  *corev1.Probe
		serve func(*testing.T) *peer
		runs  int
	}{
		"HTTP, no connection": {httpGet(), unanswering(), 1},
		"HTTP, no reply":      {httpGet(), wire(linger), 1},
		"HTTP, no body":       {httpGet(), wire(then(say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), linger)), maxAttempts},
		"TLS, no handshake":   {httpGet(https), unresponsive, 1},
		"TCP, no connection":  {tcpSocket(), unanswering(), 1},
		"gRPC, no connection": {grpcService(""), unanswering(), 1},
		"gRPC, no settings":   {grpcService(""), unresponsive, 1},
		"gRPC, refused":       {grpcService(""), refusing(), 1},
		"gRPC, no answer":     {grpcService("hang"), healthServer(answers{}), 1},
	}
}

// TestTimeouts probes servers that never respond. Neither side may return before the timeout, to
// the millisecond, or take as long as another run would.
func TestTimeouts(t *testing.T) {
	const timeout = 3 * time.Second
	// Shorter than a timeout, so that one run too many takes too long.
	const slack = 2 * time.Second
	for name, tc := range silence() {
		for who, probe := range map[string]side{"kubelet": kubelet, "seamark": seamark} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				server := tc.serve(t)
				start := time.Now()
				got := probe(t, at(tc.spec, server.port), server.ip, timeout)
				took := time.Since(start)
				if got.Conclusion == success {
					t.Errorf("got %+v, want no success", got)
				}
				if least := time.Duration(tc.runs) * timeout; took < least || took > least+slack {
					t.Errorf("the probe took %s, want %s", took, least)
				}
			})
		}
	}
}

// TestTimeoutEdge probes servers that respond shortly before and after the timeout. A response
// well before the timeout counts, and one well after it does not. In between, the result depends
// on the machine, for the kubelet too.
func TestTimeoutEdge(t *testing.T) {
	const timeout = 3 * time.Second
	// Seamark's prober closes the connection a second after the timeout. Less than that, so that a
	// missing timeout of its client is noticed.
	const around = 700 * time.Millisecond
	for _, off := range []time.Duration{-2000, -1500, -850, -100, -20, -5, -2, -1, 0, 1, 2, 5, 20, 100, 850, 1500, 2000} {
		for who, probe := range map[string]side{"kubelet": kubelet, "seamark": seamark} {
			t.Run(fmt.Sprintf("%+d/%s", off, who), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				var answered time.Time
				server := wire(func(conn net.Conn, self *peer, n int) {
					<-time.After(timeout + off*time.Millisecond)
					mu.Lock()
					answered = time.Now()
					mu.Unlock()
					say(ok)(conn, self, n)
				})(t)
				start := time.Now()
				got := probe(t, at(httpGet(), server.port), server.ip, timeout)
				mu.Lock()
				defer mu.Unlock()
				inTime := !answered.IsZero() && answered.Sub(start) < timeout-around
				late := answered.IsZero() || answered.Sub(start) > timeout+around
				if inTime && got.Conclusion != success || late && got.Conclusion != failure {
					t.Errorf("got %+v for a response %s after the start", got, answered.Sub(start))
				}
			})
		}
	}
}
