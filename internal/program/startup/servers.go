// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/internal/program/health"
	"github.com/seamark-dev/seamark/internal/program/profiles"
	"github.com/seamark-dev/seamark/internal/program/serving"
)

// Addresses are where a program serves, host:port. Empty or "0" disables a server.
type Addresses struct {
	// Health serves /healthz and /readyz, Metrics /metrics, and Profiles /debug/pprof/.
	Health, Metrics, Profiles string
}

// server is one of the servers of a program.
type server struct {
	listener net.Listener
	handler  http.Handler
}

// listen opens the addresses. It returns an error if one is not available.
func listen(addresses Addresses, checks []health.Check) ([]server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	var servers []server
	for _, each := range []struct {
		field, address string
		handler        http.Handler
	}{
		{"health.bindAddress", addresses.Health, health.Handler(checks...)},
		{"metrics.bindAddress", addresses.Metrics, mux},
		{"pprof.bindAddress", addresses.Profiles, profiles.Handler()},
	} {
		if each.address == "" || each.address == "0" {
			continue
		}
		listener, err := net.Listen("tcp", each.address)
		if err != nil {
			for _, open := range servers {
				err = errors.Join(err, open.listener.Close())
			}
			return nil, fmt.Errorf("%s %q: must be a free address and port, or 0: %w", each.field, each.address, err)
		}
		servers = append(servers, server{listener, each.handler})
	}
	return servers, nil
}

// serve serves until ctx ends. If a server fails, it calls failed.
func serve(ctx context.Context, servers []server, failed func()) error {
	var running errgroup.Group
	for _, each := range servers {
		running.Go(func() error {
			err := serving.Serve(ctx, each.listener, each.handler, serving.Options{})
			if err != nil {
				failed()
			}
			return err //nolint:wrapcheck // it names the address
		})
	}
	return running.Wait() //nolint:wrapcheck // as above
}
