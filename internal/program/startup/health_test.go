// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHealth(t *testing.T) {
	var synced atomic.Bool
	var waiting error
	h, err := NewHealth("0", Check{Name: "crds", Unready: func(*http.Request) error { return waiting }}, CachesCheck(&synced))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(path string, code int, body string) {
		t.Helper()
		answer := httptest.NewRecorder()
		h.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
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
	if err := h.Serve(t.Context()); err != nil {
		t.Errorf("serve without an address: %v", err)
	}
}

func TestHealthAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	if _, err := NewHealth(address); err == nil || !strings.Contains(err.Error(), `health.bindAddress "`+address) {
		t.Errorf("error %v, want one that names the field and %s", err, address)
	}
}
