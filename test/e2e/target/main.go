// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command target is the server that the end-to-end tests probe: HTTP on port 8080, gRPC with the
// health service on 9090, gRPC without it on 9091, and TCP on 7070.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run serves all four ports until ctx ends.
func run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveHTTP(ctx) })
	group.Go(func() error { return serveGRPC(ctx, ":9090", healthServer()) })
	group.Go(func() error { return serveGRPC(ctx, ":9091", nil) })
	group.Go(func() error { return serveTCP(ctx) })
	return group.Wait()
}

// healthServer returns a server with two services: up, which is serving, and down, which is not.
func healthServer() *health.Server {
	server := health.NewServer()
	server.SetServingStatus("up", healthpb.HealthCheckResponse_SERVING)
	server.SetServingStatus("down", healthpb.HealthCheckResponse_NOT_SERVING)
	return server
}

// handler returns a response for each path that the tests use.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") })
	mux.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) })
	mux.HandleFunc("/home", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/lost", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/fail", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "game.example" || !slices.Equal(r.Header.Values("X-Probe"), []string{"one", "two"}) {
			http.Error(w, fmt.Sprintf("host %q, X-Probe %q", r.Host, r.Header.Values("X-Probe")), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "headers as sent")
	})
	return mux
}

func serveHTTP(ctx context.Context) error {
	server := &http.Server{Addr: ":8080", Handler: handler(), BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

func serveGRPC(ctx context.Context, address string, service *health.Server) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for gRPC: %w", err)
	}
	server := grpc.NewServer()
	if service != nil {
		healthpb.RegisterHealthServer(server, service)
	}
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(listener)
}

func serveTCP(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":7070")
	if err != nil {
		return fmt.Errorf("listen for TCP: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		_ = connection.Close()
	}
}
