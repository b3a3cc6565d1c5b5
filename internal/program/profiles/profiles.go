// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiles serves the profiles of net/http/pprof.
package profiles

import (
	"net/http"
	"net/http/pprof"
)

// Handler serves /debug/pprof/. Profiles can contain confidential data, so it should be served on loopback only.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
