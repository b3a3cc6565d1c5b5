// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seamark-dev/seamark/internal/probing"
	grpcprobe "github.com/seamark-dev/seamark/internal/probing/grpc"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is ample for servers that respond.
const timeout = 10 * time.Second

func target(address, service string, timeout time.Duration) probing.Target {
	return probing.Target{
		Handler: probing.HandlerGRPC, Timeout: timeout,
		GRPC: &probing.GRPC{Address: address, Service: service},
	}
}

func serve(t *testing.T, listener net.Listener, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(options...)
	register(server)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// checker responds to health checks with a function.
type checker struct {
	grpc_health_v1.UnimplementedHealthServer
	check func(context.Context) (*grpc_health_v1.HealthCheckResponse, error)
}

func (c checker) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return c.check(ctx)
}

// serveCheck starts a server that responds to health checks with a function.
func serveCheck(t *testing.T, check func(context.Context) (*grpc_health_v1.HealthCheckResponse, error)) string {
	t.Helper()
	return serve(t, probetest.Listen(t, "127.0.0.1:0"), func(s *grpc.Server) {
		grpc_health_v1.RegisterHealthServer(s, checker{check: check})
	})
}

func TestProbe(t *testing.T) {
	healthy := health.NewServer()
	healthy.SetServingStatus("game", grpc_health_v1.HealthCheckResponse_SERVING)
	healthy.SetServingStatus("lobby", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	register := func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, healthy) }
	address := serve(t, probetest.Listen(t, "127.0.0.1:0"), register)
	failing := serveCheck(t, func(context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		return nil, status.Error(codes.Internal, "out of dice")
	})
	hanging := serveCheck(t, func(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	huge := serveCheck(t, func(context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		response := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
		response.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType), make([]byte, 10<<10)))
		return response, nil
	})
	silent := probetest.Serve(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })

	cases := map[string]struct {
		target probing.Target
		want   bool
		text   string
	}{
		"serving":         {target: target(address, "", timeout), want: true, text: "service healthy"},
		"service serving": {target: target(address, "game", timeout), want: true, text: "service healthy"},
		"not serving":     {target: target(address, "lobby", timeout), text: `service unhealthy (responded with "NOT_SERVING")`},
		"unknown service": {target: target(address, "chat", timeout), text: `service "chat" not found on server`},
		"no health service": {
			target: target(
				serve(t, probetest.Listen(t, "127.0.0.1:0"), func(*grpc.Server) {}), "", timeout,
			), text: "does not implement the gRPC health protocol",
		},
		"error":           {target: target(failing, "", timeout), text: "Internal: out of dice"},
		"huge response":   {target: target(huge, "", timeout), text: "ResourceExhausted: "},
		"no response":     {target: target(hanging, "", 100*time.Millisecond), text: "timeout: no response to the health check within 100ms"},
		"refused":         {target: target(probetest.Refusing(t), "", 100*time.Millisecond), text: "connection refused"},
		"no TCP response": {target: target(probetest.Unresponsive(t), "", 100*time.Millisecond), text: "within 100ms: no response from host"},
		"no gRPC, silent": {target: target(silent, "", 100*time.Millisecond), text: "does not respond as a gRPC server"},
		"no gRPC, closes": {target: target(probetest.Serve(t, func(net.Conn) {}), "", 100*time.Millisecond), text: "does not respond as a gRPC server"},
	}
	if listener := probetest.IPv6(t); listener != nil {
		tc := cases["serving"]
		tc.target = target(serve(t, listener, register), "", timeout)
		cases["serving on IPv6"] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := grpcprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), tc.target)
			expect.NoError(t, err)
			if got.Success != tc.want || !strings.Contains(got.Message, tc.text) {
				t.Errorf("Probe() = %+v, want success %t and a message with %q", got, tc.want, tc.text)
			}
			expect.Equal(t, "TimedOut", tc.target.Timeout < timeout, got.TimedOut)
		})
	}
}

func TestProbeSendsUserAgent(t *testing.T) {
	agents := make(chan string, 1)
	address := serveCheck(t, func(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		agents <- strings.Join(md.Get("user-agent"), ",")
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	})
	if got, err := grpcprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(address, "", timeout)); err != nil || !got.Success {
		t.Fatalf("Probe() = %+v, %v, want success", got, err)
	}
	if agent := <-agents; !strings.HasPrefix(agent, "kube-probe/1.36 ") {
		t.Errorf("user agent = %q, want prefix kube-probe/1.36", agent)
	}
}

// TestProbeReconnects has a server that closes its first connection.
func TestProbeReconnects(t *testing.T) {
	listener := &closingListener{Listener: probetest.Listen(t, "127.0.0.1:0"), refuse: 1}
	address := serve(t, listener, func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, health.NewServer()) })
	got, err := grpcprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(address, "", timeout))
	if err != nil || !got.Success {
		t.Errorf("Probe() = %+v, %v, want success on the second connection", got, err)
	}
}

// closingListener closes its first connections.
type closingListener struct {
	net.Listener
	refuse int
}

func (l *closingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	for ; err == nil && l.refuse > 0; l.refuse-- {
		_ = conn.Close()
		conn, err = l.Listener.Accept()
	}
	return conn, err
}

func TestProbeEndsWithItsContext(t *testing.T) {
	stopping := errors.New("agent stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	address := serveCheck(t, func(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
		cancel(stopping)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if got, err := grpcprobe.New(probing.Dialer(), "1.36").Probe(ctx, target(address, "", time.Minute)); !errors.Is(err, stopping) {
		t.Errorf("Probe() = %+v, %v, want error %v", got, err, stopping)
	}
}

func TestProbeOverTLS(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	register := func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, health.NewServer()) }
	secured := serve(t, probetest.Listen(t, "127.0.0.1:0"), register, grpc.Creds(credentials.NewServerTLSFromCert(&certificate.TLS.Certificates[0])))
	plain := serve(t, probetest.Listen(t, "127.0.0.1:0"), register)
	for name, test := range map[string]struct {
		address   string
		tls, want bool
	}{
		"TLS":              {address: secured, tls: true, want: true},
		"plain text":       {address: plain, want: true},
		"no TLS on server": {address: plain, tls: true},
		"no TLS on client": {address: secured},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(test.address, "", timeout)
			if !test.want {
				to.Timeout = 200 * time.Millisecond
			}
			to.GRPC.TLS = test.tls
			got, err := grpcprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), to)
			if err != nil || got.Success != test.want {
				t.Errorf("Probe() = %+v, %v, want success %t", got, err, test.want)
			}
		})
	}
}
