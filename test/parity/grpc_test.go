// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
)

// answers holds the response of a health service for each service name. Other services are
// NotFound, and the service "hang" never responds.
type answers map[string]func() (*grpc_health_v1.HealthCheckResponse, error)

// health implements the gRPC service.
type health struct {
	grpc_health_v1.UnimplementedHealthServer

	answers answers
	note    func(string)
}

func (h *health) Check(ctx context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	names := make([]string, 0, len(sent))
	for name, values := range sent {
		names = append(names, fmt.Sprint(name, values))
	}
	sort.Strings(names)
	h.note(fmt.Sprintf("%q %s", in.GetService(), strings.Join(names, " ")))
	if in.GetService() == "hang" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if answer, known := h.answers[in.GetService()]; known {
		return answer()
	}
	return nil, status.Error(codes.NotFound, "unknown service")
}

func says(state grpc_health_v1.HealthCheckResponse_ServingStatus) func() (*grpc_health_v1.HealthCheckResponse, error) {
	return func() (*grpc_health_v1.HealthCheckResponse, error) {
		return &grpc_health_v1.HealthCheckResponse{Status: state}, nil
	}
}

func fails(code codes.Code, message string) func() (*grpc_health_v1.HealthCheckResponse, error) {
	return func() (*grpc_health_v1.HealthCheckResponse, error) { return nil, status.Error(code, message) }
}

func healthServer(a answers, options ...grpc.ServerOption) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return serveHealth(t, probetest.Listen(t, "127.0.0.1:0"), a, options...)
	}
}

func serveHealth(t *testing.T, listener net.Listener, a answers, options ...grpc.ServerOption) *peer {
	t.Helper()
	self := newPeer(t, listener.Addr().String())
	server := grpc.NewServer(options...)
	if a != nil {
		grpc_health_v1.RegisterHealthServer(server, &health{answers: a, note: self.note})
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return self
}

// TestGRPC probes servers with different behaviors. Both sides must have the same result and send
// the same request. Messages about states are equal. For errors, Seamark reports the server's
// message without the text of the gRPC library, which is not stable.
func TestGRPC(t *testing.T) {
	const shortTimeout = 700 * time.Millisecond
	serving := answers{"": says(grpc_health_v1.HealthCheckResponse_SERVING), "game": says(grpc_health_v1.HealthCheckResponse_SERVING)}
	creds := func(t *testing.T) grpc.ServerOption {
		return grpc.Creds(credentials.NewServerTLSFromCert(new(certificate(t, valid))))
	}
	cases := map[string]struct {
		service  string
		serve    func(*testing.T) *peer
		timeout  time.Duration
		want     conclusion
		messages compareMessages
		said     string
	}{
		"serving":               {"", healthServer(serving), ample, success, verbatim, "service healthy"},
		"service":               {"game", healthServer(serving), ample, success, verbatim, "service healthy"},
		"unknown service":       {"chess", healthServer(serving), ample, failure, skipMessages, "unknown service"},
		"non-ASCII service":     {"jeu d'échecs", healthServer(serving), ample, failure, skipMessages, "unknown service"},
		"invalid UTF-8 service": {"\xff", healthServer(serving), ample, failure, skipMessages, "invalid UTF-8"},
		"long service":          {strings.Repeat("x", 100<<10), healthServer(serving), ample, failure, skipMessages, "xxx"},
		"service over 4 MiB":    {strings.Repeat("x", 5<<20), healthServer(serving), ample, failure, skipMessages, "larger than max"},
		"no health service":     {"", healthServer(nil), ample, failure, skipMessages, "unknown service grpc.health.v1.Health"},
		"on IPv6":               {"", healthOnIPv6, ample, success, verbatim, "service healthy"},
		"no reply":              {"hang", healthServer(serving), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"refused":               {"", refusing(), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"no response":           {"", unanswering(), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"closes at once":        {"", short(), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"resets at once":        {"", resetting(), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"HTTP/1.1":              {"", wire(say("HTTP/1.1 400 Bad\r\n\r\n")), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"invalid protocol":      {"", plain(say("nonsense, nonsense, nonsense")), shortTimeout, failure, skipMessages, shortTimeout.String()},
		"TLS server": {"", func(t *testing.T) *peer { return healthServer(serving, creds(t))(t) },
			shortTimeout, failure, skipMessages, shortTimeout.String()},
		"long error message": {"", healthServer(answers{"": fails(codes.Internal, strings.Repeat("x", 5000))}), ample, failure, skipMessages, "xxx"},
		"special characters": {"", healthServer(answers{"": fails(codes.Internal, "100% é\n\xff")}), ample, failure, skipMessages, "100% é"},
		"delayed start":      {"", late(serving, 300*time.Millisecond), ample, success, verbatim, "service healthy"},
	}
	for state := range grpc_health_v1.HealthCheckResponse_ServingStatus(6) {
		tc := cases["serving"]
		tc.serve = healthServer(answers{"": says(state)})
		if state != grpc_health_v1.HealthCheckResponse_SERVING {
			tc.want, tc.said = failure, fmt.Sprintf("responded with %q", state)
		}
		cases["state "+state.String()] = tc
	}
	for code := codes.Canceled; code <= codes.Unauthenticated+1; code++ {
		tc := cases["unknown service"]
		tc.service, tc.serve, tc.said = "", healthServer(answers{"": fails(code, "the server's message")}), "the server's message"
		if code == codes.DeadlineExceeded {
			tc.said = ample.String()
		}
		cases["code "+code.String()] = tc
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compare(t, grpcService(tc.service), tc.serve, tc.timeout, tc.want, tc.messages)
			if !strings.Contains(got.Verdict.Message, tc.said) {
				t.Errorf("message %q, want it to contain %q", got.Verdict.Message, tc.said)
			}
		})
	}
}

func healthOnIPv6(t *testing.T) *peer {
	t.Helper()
	listener := probetest.IPv6(t)
	if listener == nil {
		listener = probetest.Listen(t, "127.0.0.1:0")
	}
	return serveHealth(t, listener, answers{"": says(grpc_health_v1.HealthCheckResponse_SERVING)})
}

// late serves on a port that first refuses connections.
func late(a answers, after time.Duration) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		fd, address := probetest.Bind(t)
		self := newPeer(t, address)
		server := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(server, &health{answers: a, note: self.note})
		t.Cleanup(server.Stop)
		timer := time.AfterFunc(after, func() {
			if listener := listenOn(t, fd); listener != nil {
				_ = server.Serve(listener)
			}
		})
		t.Cleanup(func() { timer.Stop() })
		return self
	}
}

// listenOn listens on a bound socket. It returns nil if the test has ended.
func listenOn(t *testing.T, fd int) net.Listener {
	t.Helper()
	if err := syscall.Listen(fd, 16); err != nil {
		return nil
	}
	own, err := syscall.Dup(fd)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(own), "listener")
	defer func() { _ = file.Close() }()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	return listener
}
