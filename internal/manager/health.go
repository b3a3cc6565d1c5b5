// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// health serves /healthz and /readyz from before the CRDs are served until the manager has
// stopped. The manager is alive as long as it answers, and ready when all checks succeed, whether
// or not it is the leader.
type health struct {
	// listener is nil if the server is disabled.
	listener net.Listener
	checks   []check
}

// check is one condition of readiness.
type check struct {
	name string
	// unready returns why the manager is not ready, or nil.
	unready func(*http.Request) error
}

// newHealth listens on the address. "0" disables the server.
func newHealth(address string, checks ...check) (*health, error) {
	h := &health{checks: checks}
	if address == "" || address == "0" {
		return h, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("health.bindAddress %q: must be a free address and port, or 0: %w", address, err)
	}
	h.listener = listener
	return h, nil
}

// serve serves until ctx ends.
func (h *health) serve(ctx context.Context) error {
	if h.listener == nil {
		return nil
	}
	server := &http.Server{Handler: h.handler(), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health checks on %s: %w", h.listener.Addr(), err)
	}
	return nil
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, ""
		for _, c := range h.checks {
			result := "ok"
			if err := c.unready(r); err != nil {
				status, result = http.StatusServiceUnavailable, err.Error()
			}
			body += fmt.Sprintf("%s: %s\n", c.name, result)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	return mux
}

// readiness tracks whether the caches are synced.
type readiness struct {
	cache  cache.Cache
	synced *atomic.Bool
}

// Start waits until the caches are synced.
func (r *readiness) Start(ctx context.Context) error {
	r.synced.Store(r.cache.WaitForCacheSync(ctx))
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false: it runs in every manager.
func (r *readiness) NeedLeaderElection() bool { return false }

// cachesCheck returns the check of the caches.
func cachesCheck(synced *atomic.Bool) check {
	return check{name: "caches", unready: func(*http.Request) error {
		if !synced.Load() {
			return errors.New("not synced")
		}
		return nil
	}}
}
