// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves on a free port until the test ends, and returns its address.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, append(args, "--host", "127.0.0.1", "--port", "0"), in) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:n])), "listening on ")
	if !found {
		t.Fatalf("printed %q", line[:n])
	}
	return address
}

// eventually waits up to a few seconds until the condition is met.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func get(t *testing.T, address, header string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	if header != "" {
		request.Header.Set("X-Probe", header)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestHTTP(t *testing.T) {
	address := start(t, "http", "--healthy-for", "1s")
	if code := get(t, address, ""); code != http.StatusOK {
		t.Errorf("at first: status %d", code)
	}
	eventually(t, "the server turns unhealthy", func() bool {
		return get(t, address, "") == http.StatusInternalServerError
	})
}

func TestHTTPHeader(t *testing.T) {
	address := start(t, "http", "--require-header", "X-Probe=yes")
	for header, want := range map[string]int{"": http.StatusForbidden, "no": http.StatusForbidden, "yes": http.StatusOK} {
		if code := get(t, address, header); code != want {
			t.Errorf("header %q: status %d, want %d", header, code, want)
		}
	}
}

func TestTCP(t *testing.T) {
	address := start(t, "tcp", "--healthy-for", "1s")
	connects := func() bool {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	}
	if !connects() {
		t.Error("at first: no connection")
	}
	eventually(t, "the server stops to listen", func() bool { return !connects() })
}

func TestGRPC(t *testing.T) {
	address := start(t, "grpc", "--healthy-for", "1s", "--service", "queue", "--alternate", "300ms")
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := healthv1.NewHealthClient(connection)
	is := func(service string, want healthv1.HealthCheckResponse_ServingStatus) func() bool {
		return func() bool {
			response, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
			return err == nil && response.GetStatus() == want
		}
	}
	for _, service := range []string{"", "queue"} {
		if !is(service, healthv1.HealthCheckResponse_SERVING)() {
			t.Errorf("at first %q does not serve", service)
		}
	}
	if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v", err)
	}
	eventually(t, "the service stops to serve", is("queue", healthv1.HealthCheckResponse_NOT_SERVING))
	eventually(t, "the service serves again", is("queue", healthv1.HealthCheckResponse_SERVING))
	eventually(t, "the server stops to serve", is("", healthv1.HealthCheckResponse_NOT_SERVING))
}

func TestSlowStart(t *testing.T) {
	begin := time.Now()
	start(t, "tcp", "--start-after", "200ms")
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("listened after %s", took)
	}
}

func TestBadArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"none":         {},
		"unknown mode": {"udp"},
		"unknown flag": {"http", "--nonsense"},
		"bad header":   {"http", "--require-header", "X-Probe"},
		"bad port":     {"tcp", "--port", "70000"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args, io.Discard); err == nil {
				t.Error("no error")
			}
		})
	}
}
