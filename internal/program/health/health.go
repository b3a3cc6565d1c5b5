// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health serves /healthz and /readyz. A program is alive as long as it answers, and ready when
// all of its checks succeed.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Check is one condition of readiness.
type Check struct {
	// Name is the name in the response.
	Name string
	// Unready returns why the program is not ready, or nil.
	Unready func(*http.Request) error
}

// Until returns a check that fails with the reason until done returns true.
func Until(name, reason string, done func() bool) Check {
	return Check{Name: name, Unready: func(*http.Request) error {
		if !done() {
			return errors.New(reason)
		}
		return nil
	}}
}

// Handler serves /healthz, and /readyz with the result of each check.
func Handler(checks ...Check) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusOK, ""
		for _, c := range checks {
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

// Serve serves HTTP on the listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}
