// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health serves /healthz and /readyz. A program is alive as long as it answers, and ready when
// all of its checks succeed.
package health

import (
	"errors"
	"fmt"
	"net/http"
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
