// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

type status struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Role     string `json:"role"`
	Primary  string `json:"primary"`
	Switches int32  `json:"switches"`
}

// serve answers requests until ctx ends.
func serve(ctx context.Context, listener net.Listener, r *replica) error {
	server := &http.Server{Handler: handler(r), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

func handler(r *replica) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /primary", func(w http.ResponseWriter, _ *http.Request) {
		s := r.snapshot()
		answer(w, s.isPrimary(time.Now()) || s.isSuccessor(), s.role(time.Now()))
	})
	mux.HandleFunc("GET /caught-up", func(w http.ResponseWriter, _ *http.Request) {
		s := r.snapshot()
		behind := s.behind(time.Now()).Round(time.Second)
		answer(w, behind <= time.Second, fmt.Sprintf("%d seconds behind", behind/time.Second))
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, r.snapshot().joined, "follows a primary")
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s := r.snapshot()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status{
			Name: s.name, Version: r.version, Role: s.role(time.Now()), Primary: s.seen.holder, Switches: s.seen.switches,
		})
	})
	// Ends the process as a crash does: the role is not released.
	mux.HandleFunc("POST /crash", func(http.ResponseWriter, *http.Request) { os.Exit(1) })
	return mux
}

// role returns the role of the replica in words.
func (s *state) role(now time.Time) string {
	switch {
	case s.isPrimary(now) && s.seen.successor != "":
		return "primary, hands over to " + s.seen.successor
	case s.isPrimary(now):
		return "primary"
	case s.isSuccessor():
		return "successor of the primary"
	default:
		return "secondary"
	}
}

// answer responds with 200 or 503, so that probes succeed or fail.
func answer(w http.ResponseWriter, ok bool, text string) {
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, text)
}
