// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// serveHTTP responds to every path with 200, with 500 after healthyFor, and with 403 if the
// required header is missing.
func serveHTTP(ctx context.Context, listener net.Listener, o options) error {
	start := time.Now()
	name, value, _ := strings.Cut(o.header, "=")
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := time.Since(start)
		switch {
		case name != "" && r.Header.Get(name) != value:
			http.Error(w, "the header "+name+" is not "+value, http.StatusForbidden)
		case o.healthyFor > 0 && up >= o.healthyFor:
			http.Error(w, fmt.Sprintf("up for %s, which is too long", up.Round(time.Second)), http.StatusInternalServerError)
		default:
			fmt.Fprintln(w, "ok")
		}
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// serveTCP accepts and closes connections until healthyFor, and then stops listening. The
// program keeps running.
func serveTCP(ctx context.Context, listener net.Listener, o options) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	if o.healthyFor > 0 {
		deaf := time.AfterFunc(o.healthyFor, func() { _ = listener.Close() })
		defer deaf.Stop()
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			return fmt.Errorf("accept connection: %w", err)
		}
		_ = connection.Close()
	}
	<-ctx.Done()
	return nil
}

// serveGRPC responds to health checks of the server, which is NOT_SERVING after healthyFor, and
// of the service, which alternates.
func serveGRPC(ctx context.Context, listener net.Listener, o options) error {
	server, checks := grpc.NewServer(), health.NewServer()
	healthv1.RegisterHealthServer(server, checks)
	if o.service != "" {
		checks.SetServingStatus(o.service, healthv1.HealthCheckResponse_SERVING)
	}
	if o.healthyFor > 0 {
		unhealthy := time.AfterFunc(o.healthyFor, func() {
			checks.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
		})
		defer unhealthy.Stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alternated := make(chan struct{})
	go func() {
		defer close(alternated)
		if o.alternate > 0 {
			alternate(ctx, checks, o)
		}
	}()
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err := server.Serve(listener)
	cancel()
	<-alternated
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC: %w", err)
	}
	return nil
}

// alternate changes the service's state until ctx ends.
func alternate(ctx context.Context, checks *health.Server, o options) {
	states := [2]healthv1.HealthCheckResponse_ServingStatus{
		healthv1.HealthCheckResponse_NOT_SERVING, healthv1.HealthCheckResponse_SERVING,
	}
	for i := 0; pause(ctx, o.alternate); i++ {
		checks.SetServingStatus(o.service, states[i%2])
	}
}
