// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// check is one part of readiness: its name, and whether it is ready.
type check struct {
	name  string
	ready func() bool
}

// serve answers /healthz, /readyz and /metrics on the listener until ctx ends.
func serve(ctx context.Context, listener net.Listener, gatherer prometheus.Gatherer, checks []check) error {
	server := &http.Server{Handler: handler(gatherer, checks), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health and metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}

func handler(gatherer prometheus.Gatherer, checks []check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status, body := http.StatusOK, ""
		for _, c := range checks {
			word := "ok"
			if !c.ready() {
				status, word = http.StatusServiceUnavailable, "not ready"
			}
			body += fmt.Sprintf("%s: %s\n", c.name, word)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	return mux
}
