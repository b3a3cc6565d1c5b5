// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grpc runs grpc probes, calls of grpc.health.v1.Health/Check, judged as the
// kubelet judges its own.
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
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seamark-dev/seamark/internal/probe"
)

// Prober asks gRPC servers for their health.
type Prober struct {
	userAgent string
}

var _ probe.Prober = (*Prober)(nil)

// New returns a prober that calls itself kube-probe/<version> to servers.
func New(version string) *Prober { return &Prober{userAgent: "kube-probe/" + version} }

// Probe connects without TLS, asks for the target's service once, and takes SERVING for
// success. Anything else is a failure that says why: no connection within the timeout
// (a refused one is tried again until then), no answer, another status, a service that
// the server does not know, a server without the health service.
func (p *Prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	outcome, err := p.check(ctx, target)
	if ctx.Err() != nil {
		return probe.Outcome{}, fmt.Errorf("check the health of %s: %w", target.GRPC.Address, context.Cause(ctx))
	}
	return outcome, err
}

// check runs the probe without regard to why ctx ends.
func (p *Prober) check(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()

	var dialer dialer
	conn, err := grpc.NewClient("passthrough:///"+target.GRPC.Address,
		grpc.WithUserAgent(p.userAgent),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer.dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return probe.Outcome{}, fmt.Errorf("make a client for %s: %w", target.GRPC.Address, err)
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
	return probe.Outcome{Success: true, Message: "service healthy"}, nil
}

// connected waits until the connection can carry a call. It reports false when ctx ends
// before that.
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

// explain puts the error of a health call in words.
func explain(err error, service string, timeout time.Duration) string {
	switch said := status.Convert(err); said.Code() {
	case codes.NotFound:
		return fmt.Sprintf("the server knows no service %q: %s", service, said.Message())
	case codes.Unimplemented:
		return fmt.Sprintf("the server has no health service (grpc.health.v1.Health): %s", said.Message())
	case codes.DeadlineExceeded:
		return fmt.Sprintf("timeout: no answer to the health check within %s", timeout)
	default:
		return fmt.Sprintf("the health check failed: %s: %s", said.Code(), said.Message())
	}
}

// failure is a failed outcome that says why.
func failure(format string, args ...any) probe.Outcome {
	return probe.Outcome{Message: probe.Message(fmt.Appendf(nil, format, args...))}
}

// dialer remembers how far the last connection got, which gRPC keeps to itself.
type dialer struct {
	mu  sync.Mutex
	why error
}

func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	d.note(errors.New("the host does not answer"))
	conn, err := probe.Dialer().DialContext(ctx, "tcp", address)
	if err == nil {
		d.note(errors.New("the server does not answer as a gRPC server"))
	} else {
		d.note(err)
	}
	return conn, err
}

func (d *dialer) note(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = why
}

// last says why there is no connection.
func (d *dialer) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.why
}
