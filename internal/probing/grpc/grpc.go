// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grpc runs grpc probes, which are calls of grpc.health.v1.Health/Check. It
// evaluates results as the kubelet does.
package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seamark-dev/seamark/internal/probing"
)

const (
	// maxConnectionBytes bounds what is read of a connection: the TLS handshake and the responses.
	// In memory, small frames are many times as long.
	maxConnectionBytes = probing.MaxHandshakeBytes
	// maxResponseBytes bounds the header and the message of a response, which are read completely.
	maxResponseBytes = 8 << 10
	// bufferBytes is the size of the buffers of a connection.
	bufferBytes = 4 << 10
)

// Prober checks the health of gRPC servers.
type Prober struct {
	connector probing.Connector
	userAgent string
}

var _ probing.Prober = (*Prober)(nil)

// New returns a prober with the user agent kube-probe/<version>, whose connections are opened by the
// connector.
func New(connector probing.Connector, version string) *Prober {
	return &Prober{connector: connector, userAgent: "kube-probe/" + version}
}

// Probe connects, without TLS unless the target requires it, and checks the target's service once. SERVING is success.
// Everything else is a failure with a message: no connection within the timeout (a refused
// connection is retried until then), no response, another status, an unknown service, or a
// server without the health service.
func (p *Prober) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	outcome, err := p.check(ctx, target)
	if ctx.Err() != nil {
		return probing.Outcome{}, fmt.Errorf("check health of %s: %w", target.GRPC.Address, context.Cause(ctx))
	}
	return outcome, err
}

// check runs the probe. Its outcome is only valid while ctx has not ended.
func (p *Prober) check(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()

	dialer := dialer{connector: p.connector}
	conn, err := grpc.NewClient("passthrough:///"+target.GRPC.Address,
		grpc.WithUserAgent(p.userAgent),
		grpc.WithTransportCredentials(credentialsOf(target.GRPC)),
		grpc.WithContextDialer(dialer.dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponseBytes)),
		grpc.WithMaxHeaderListSize(maxResponseBytes),
		grpc.WithReadBufferSize(bufferBytes),
		grpc.WithWriteBufferSize(bufferBytes),
	)
	if err != nil {
		return probing.Outcome{}, fmt.Errorf("create client for %s: %w", target.GRPC.Address, err)
	}
	defer func() { _ = conn.Close() }()

	if !connected(ctx, conn) {
		outcome := failure("timeout: no gRPC connection to %s within %s: %s", target.GRPC.Address, target.Timeout, dialer.last())
		outcome.TimedOut = true
		return outcome, nil
	}
	response, err := grpc_health_v1.NewHealthClient(conn).
		Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: target.GRPC.Service})
	if err != nil {
		outcome := failure("%s", explain(err, target.GRPC.Service, target.Timeout))
		outcome.TimedOut = status.Code(err) == codes.DeadlineExceeded
		return outcome, nil
	}
	if response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failure("service unhealthy (responded with %q)", response.GetStatus()), nil
	}
	return probing.Outcome{Success: true, Message: "service healthy"}, nil
}

func credentialsOf(target *probing.GRPC) credentials.TransportCredentials {
	if !target.TLS {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(probing.TLSConfig())
}

// connected waits until the connection is ready. It returns false if ctx ends before.
func connected(ctx context.Context, conn *grpc.ClientConn) bool {
	for {
		conn.Connect()
		state := conn.GetState()
		if state == connectivity.Ready {
			return true
		}
		if !conn.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// explain describes the error of a health check.
func explain(err error, service string, timeout time.Duration) string {
	switch s := status.Convert(err); s.Code() {
	case codes.NotFound:
		return fmt.Sprintf("service %q not found on server: %s", service, s.Message())
	case codes.Unimplemented:
		return fmt.Sprintf("server does not implement the gRPC health protocol (grpc.health.v1.Health): %s", s.Message())
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: no response to the health check within %s", timeout)
	default:
		return fmt.Sprintf("health check failed: %s: %s", s.Code(), s.Message())
	}
}

func failure(format string, args ...any) probing.Outcome {
	return probing.Outcome{Message: probing.Message(fmt.Appendf(nil, format, args...))}
}

// dialer records why the last connection is not ready, because gRPC does not report it.
type dialer struct {
	connector probing.Connector

	mu  sync.Mutex
	err error
	// conn is the last connection if it is not confirmed, and refusal why an earlier one was refused.
	conn    probing.Unconfirmed
	refusal error
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	d.note(errors.New("no response from host"))
	conn, err := d.connector.DialContext(ctx, "tcp", address)
	if unconfirmed, is := conn.(probing.Unconfirmed); is && err == nil {
		d.keep(unconfirmed)
	}
	if err != nil {
		d.note(err)
		return nil, err
	}
	d.note(errors.New("server does not respond as a gRPC server"))
	return probing.Limit(conn, "response of the server", maxConnectionBytes), nil
}

// keep keeps a connection that may be refused later.
func (d *dialer) keep(conn probing.Unconfirmed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refusal = d.refused()
	d.conn = conn
}

// refused returns why the last connection that is known to be refused was.
func (d *dialer) refused() error {
	if d.conn != nil {
		if err := d.conn.Refusal(); err != nil {
			return err
		}
	}
	return d.refusal
}

func (d *dialer) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialer) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refused(); err != nil {
		return err
	}
	return d.err
}
