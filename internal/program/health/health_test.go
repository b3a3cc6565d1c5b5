// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/health"
)

func TestHandler(t *testing.T) {
	var synced atomic.Bool
	var waiting error
	crds := health.Check{Name: "crds", Unready: func(*http.Request) error { return waiting }}
	handler := health.Handler(crds, health.Until("caches", "not synced", synced.Load))
	expect := func(path string, code int, body string) {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != code || answer.Body.String() != body {
			t.Errorf("%s: %d %q, want %d %q", path, answer.Code, answer.Body, code, body)
		}
	}
	waiting = errors.New("not served")
	expect("/readyz", http.StatusServiceUnavailable, "crds: not served\ncaches: not synced\n")
	expect("/healthz", http.StatusOK, "ok\n")
	waiting = nil
	expect("/readyz", http.StatusServiceUnavailable, "crds: ok\ncaches: not synced\n")
	synced.Store(true)
	expect("/readyz", http.StatusOK, "crds: ok\ncaches: ok\n")
}
