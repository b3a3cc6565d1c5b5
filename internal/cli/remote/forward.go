// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
)

// networkProber runs network probes of a container.
type networkProber struct {
	client    *Client
	container Container
}

// Probe opens a session and runs the probe once, as an agent does. Its connections go to localhost
// in the pod, and to the port of the address.
func (p *networkProber) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, err := p.client.forward(ctx, p.container.Pod)
	if err != nil {
		return probing.Outcome{}, err
	}
	defer session.Close()
	session.oneRequest = target.Handler == probing.HandlerHTTP && !target.HTTP.HTTP2
	if target.Started != nil {
		target.Started()
	}
	outcome, err := probers.Through(session, p.client.version)[target.Handler].Probe(ctx, target)
	if err != nil || ctx.Err() != nil || outcome.Success && target.Handler != probing.HandlerTCP {
		return outcome, err
	}
	// The end of a session looks like the end of its connections, which may be seen first.
	wait := time.Duration(0)
	if outcome.Success || strings.HasSuffix(outcome.Message, "EOF") || session.broken.Load() {
		wait = lossTimeout
	}
	if session.lost(wait) {
		return probing.Outcome{}, fmt.Errorf("portforward of pod %s: the session was lost", p.container.Pod.Name)
	}
	return outcome, nil
}

// lossTimeout is how long the end of a session may be seen after the end of its connections.
const lossTimeout = 100 * time.Millisecond

// session is a session of port-forwards with a pod. It is safe for concurrent use.
type session struct {
	connection httpstream.Connection
	// oneRequest is whether each connection carries one request.
	oneRequest bool
	// broken is whether a connection could not be created.
	broken atomic.Bool

	mu       sync.Mutex
	requests int
	closed   bool
}

var _ probing.Connector = (*session)(nil)

// forward opens a session. It does not end with ctx, but must be closed. The error is a *DeniedError if
// the user may not forward ports.
func (c *Client) forward(ctx context.Context, pod types.NamespacedName) (*session, error) {
	openCtx, stop := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no session within %s", openTimeout))
	defer stop()
	opening := newUpgrade(openCtx)
	dialer, err := dialerFor(opening.follow(c.config), c.subresource(pod, "portforward"))
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	type result struct {
		connection httpstream.Connection
		err        error
	}
	results := make(chan result, 1)
	go func() {
		connection, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil && protocol != portforward.PortForwardProtocolV1Name {
			_ = connection.Close()
			err = fmt.Errorf("protocol %q is not supported: must be %s", protocol, portforward.PortForwardProtocolV1Name)
		}
		results <- result{connection, err}
	}()
	select {
	case r := <-results:
		if r.err != nil {
			return nil, openError(opening.cause(r.err), "portforward", pod)
		}
		return &session{connection: r.connection}, nil
	case <-openCtx.Done():
		// A request that gets no answer continues until its timeout.
		go func() {
			if r := <-results; r.err == nil {
				_ = r.connection.Close()
			}
		}()
		return nil, openError(opening.cause(nil), "portforward", pod)
	}
}

// dialerFor returns what kubectl uses: WebSockets, or SPDY if there is no upgrade to them.
func dialerFor(config *rest.Config, request *rest.Request) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	fallback := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, request.URL())
	first, err := portforward.NewSPDYOverWebsocketDialerForStreaming(request.URL(), config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(first, fallback, fallsBack), nil
}

// Close ends the session with its connections.
func (s *session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_ = s.connection.Close()
}

// lost reports whether the other side ends the session within the time.
func (s *session) lost(within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-s.connection.CloseChan():
		return true
	case <-limit.C:
	}
	select {
	case <-s.connection.CloseChan():
		return true
	default:
		return false
	}
}

// DialContext connects to the port of the address in the pod. The connection is not confirmed.
func (s *session) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	type result struct {
		connection *forwarded
		err        error
	}
	results := make(chan result, 1)
	go func() {
		// It takes no context, and may wait for half a minute.
		connection, err := s.connect(uint16(port))
		results <- result{connection, err}
	}()
	select {
	case r := <-results:
		if r.err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, r.err)
		}
		return r.connection, nil
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				_ = r.connection.Close()
			}
		}()
		return nil, fmt.Errorf("connect to %s: %w", address, ctx.Err())
	}
}

// connect creates the two streams of a connection.
func (s *session) connect(port uint16) (*forwarded, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errors.New("the session has ended")
	}
	s.requests++
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(s.requests))
	s.mu.Unlock()

	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := s.connection.CreateStream(headers)
	if err != nil {
		s.broken.Store(true)
		return nil, err
	}
	// Nothing is written to it.
	_ = problems.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := s.connection.CreateStream(headers)
	if err != nil {
		s.broken.Store(true)
		_ = problems.Reset()
		return nil, err
	}
	return newForwarded(data, problems, s), nil
}
