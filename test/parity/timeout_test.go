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

	"github.com/seamark-dev/seamark/internal/probe/probetest"
)

// silence are the servers that never answer, by what they withhold.
func silence() map[string]struct {
	spec  *corev1.Probe
	serve func(*testing.T) *peer
	// runs is how often the kubelet asks, which takes as many timeouts.
	runs int
} {
	mute := silent(func(t *testing.T) string {
		return probetest.Serve(t, func(conn net.Conn) { linger(conn, nil, 0) })
	})
	return map[string]struct {
		spec  *corev1.Probe
		serve func(*testing.T) *peer
		runs  int
	}{
		"HTTP, no connection": {httpGet(), unanswering(), 1},
		"HTTP, no reply":      {httpGet(), wire(linger), 1},
		"HTTP, no body":       {httpGet(), wire(then(say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), linger)), tries},
		"TLS, no handshake":   {httpGet(https), mute, 1},
		"TCP, no connection":  {tcpSocket(), unanswering(), 1},
		"gRPC, no connection": {grpcService(""), unanswering(), 1},
		"gRPC, no settings":   {grpcService(""), mute, 1},
		"gRPC, refused":       {grpcService(""), refusing(), 1},
		"gRPC, no answer":     {grpcService("hang"), healthServer(answers{}), 1},
	}
}

// TestTimeouts measures both sides at servers that never answer. Neither may give up
// before the timeout, to the millisecond, nor hold on much longer.
func TestTimeouts(t *testing.T) {
	const timeout = 700 * time.Millisecond
	// patience is for a busy machine; a doubled timeout is beyond it.
	const patience = 600 * time.Millisecond
	for name, tc := range silence() {
		for who, probe := range map[string]side{"kubelet": kubelet, "seamark": seamark} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				server := tc.serve(t)
				start := time.Now()
				got := probe(t, at(tc.spec, server.port), server.ip, timeout)
				took := time.Since(start)
				if got.Judgement == success {
					t.Errorf("%+v, want no success", got)
				}
				if least := time.Duration(tc.runs) * timeout; took < least || took > least+patience {
					t.Errorf("it took %s, want %s", took, least)
				}
			})
		}
	}
}

// TestTimeoutEdge has a server that answers a few milliseconds before and after the
// timeout. What was sent well before it must count, what was sent well after it must not;
// in the milliseconds around it the machine decides, for the kubelet too.
func TestTimeoutEdge(t *testing.T) {
	const timeout = time.Second
	const around = 150 * time.Millisecond
	for _, off := range []time.Duration{-500, -300, -200, -100, -20, -5, -2, -1, 0, 1, 2, 5, 20, 100, 200, 300, 500} {
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
				if inTime && got.Judgement != success || late && got.Judgement != failure {
					t.Errorf("%+v, answered %s after the start", got, answered.Sub(start))
				}
			})
		}
	}
}
