// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

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

// Health serves /healthz and /readyz from before the CRDs are served until the program has
// stopped. The program is alive as long as it answers, and ready when all checks succeed, whether
// or not it is the leader.
type Health struct {
	// listener is nil if the server is disabled.
	listener net.Listener
	checks   []Check
}

// Check is one condition of readiness.
type Check struct {
	// Name is the name in the response.
	Name string
	// Unready returns why the program is not ready, or nil.
	Unready func(*http.Request) error
}

// NewHealth listens on the address. "0" disables the server.
func NewHealth(address string, checks ...Check) (*Health, error) {
	h := &Health{checks: checks}
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

// Serve serves until ctx ends.
func (h *Health) Serve(ctx context.Context) error {
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

func (h *Health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, ""
		for _, c := range h.checks {
			result := "ok"
			if err := c.Unready(r); err != nil {
				status, result = http.StatusServiceUnavailable, err.Error()
			}
			body += fmt.Sprintf("%s: %s\n", c.Name, result)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	return mux
}

// Readiness tracks whether the caches are synced.
type Readiness struct {
	// Cache is the cache of the controllers.
	Cache cache.Cache
	// Synced becomes true when the cache is synced.
	Synced *atomic.Bool
}

// Start waits until the caches are synced.
func (r *Readiness) Start(ctx context.Context) error {
	r.Synced.Store(r.Cache.WaitForCacheSync(ctx))
	<-ctx.Done()
	return nil
}

// NeedLeaderElection returns false: it runs whether or not the program leads.
func (r *Readiness) NeedLeaderElection() bool { return false }

// CachesCheck returns the check of the caches.
func CachesCheck(synced *atomic.Bool) Check {
	return Check{Name: "caches", Unready: func(*http.Request) error {
		if !synced.Load() {
			return errors.New("not synced")
		}
		return nil
	}}
}

// Run serves the health checks until run has returned, and returns both errors. It ends the context
// of run if the server fails.
func (h *Health) Run(ctx context.Context, run func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	healthy, closeHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer closeHealth()
	served := make(chan error, 1)
	go func() {
		err := h.Serve(healthy)
		if err != nil {
			stop()
		}
		served <- err
	}()
	err := run(running)
	closeHealth()
	return errors.Join(err, <-served)
}
