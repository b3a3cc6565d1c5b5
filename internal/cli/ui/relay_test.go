// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	webui "github.com/seamark-dev/seamark/internal/web"
)

// get requests the path of the manager's page through a proxy whose connections are opened by dial.
func get(t *testing.T, dial func(context.Context) (net.Conn, error)) *http.Response {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/assets/main.js", http.NoBody)
	request.Header.Set("Cookie", "key=secret")
	request.Header.Set("Authorization", "Bearer of-the-browser")
	recorder := httptest.NewRecorder()
	proxy(transport).ServeHTTP(recorder, request)
	return recorder.Result()
}

func TestProxy(t *testing.T) {
	var got http.Header
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		got.Set("Host", r.Host)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Security-Policy", "default-src *")
		_, _ = io.WriteString(w, "content")
	}))
	defer manager.Close()
	response := get(t, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", manager.Listener.Addr().String())
	})
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "content" {
		t.Errorf("body %q, %v", body, err)
	}
	want := http.Header{}
	webui.SetHeaders(want)
	want.Set("Cache-Control", "no-cache")
	for name, values := range want {
		if diff := cmp.Diff(values, response.Header.Values(name)); diff != "" {
			t.Errorf("header %s (-want +got):\n%s", name, diff)
		}
	}
	if got.Get("Host") != managerHost || got.Get("Cookie") != "" || got.Get("Authorization") != "" {
		t.Errorf("the manager received %v, want its own host, no cookie and no token of the browser", got)
	}
}

func TestProxyWithoutManager(t *testing.T) {
	response := get(t, func(context.Context) (net.Conn, error) { return nil, errors.New("no manager is ready") })
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), `"error":"no manager is ready"`) {
		t.Errorf("status %d, body %q, %v", response.StatusCode, body, err)
	}
	if diff := cmp.Diff([]string{"no-store"}, response.Header.Values("Cache-Control")); diff != "" {
		t.Errorf("Cache-Control (-want +got):\n%s", diff)
	}
}
