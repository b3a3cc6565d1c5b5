// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestErrors(t *testing.T) {
	f := start(t, web.Limits{})
	f.source.err = &web.Refusal{Status: 403, Message: "no permission to list pods"}
	long := strings.Repeat("a", 5000)
	for name, test := range map[string]struct {
		method, path string
		status       int
		message      string
	}{
		"method":            {"POST", "/api/v1/session", 405, `method "POST" is not allowed: must be GET or HEAD`},
		"method of page":    {"DELETE", "/", 405, `method "DELETE" is not allowed: must be GET or HEAD`},
		"path":              {"GET", "/api/v2", 404, "there is nothing at this path"},
		"file":              {"GET", "/assets/../page.go", 404, "there is nothing at this path"},
		"folder":            {"GET", "/assets/", 404, "there is nothing at this path"},
		"query":             {"GET", "/api/v1/session?namespace=" + long, 414, "the query must have at most 4096 bytes"},
		"namespace":         {"GET", "/api/v1/stream?namespace=A", 400, `namespace: "A" is invalid: a lowercase RFC 1123 label`},
		"since":             {"GET", "/api/v1/timeline?namespace=ns&pod=a&since=100h", 400, `since: "100h" is invalid: must be 15m, 1h or 6h`},
		"pod":               {"GET", "/api/v1/timeline?namespace=ns&pod=a/b&since=1h", 400, `pod: "a/b" is invalid`},
		"timeline, no ns":   {"GET", "/api/v1/timeline?pod=a&since=1h", 400, "namespace: the namespace of the pod is required"},
		"pod without probe": {"GET", "/api/v1/timeline?namespace=ns&pod=a&since=1h", 404, "pod ns/a has no probes"},
		"set":               {"GET", "/api/v1/set?namespace=ns&set=A", 400, `set: "A" is invalid`},
		"set, no ns":        {"GET", "/api/v1/set?set=a", 400, "namespace: the namespace of the set is required"},
		"unknown set":       {"GET", "/api/v1/set?namespace=ns&kind=CloneSet&set=gone", 404, `"CloneSet ns/gone" does not exist`},
		"source refuses":    {"GET", "/api/v1/stream?namespace=ns", 403, "no permission to list pods"},
	} {
		t.Run(name, func(t *testing.T) {
			a := f.get(t, test.method, test.path)
			var got model.Error
			expect.NoErrorf(t, json.Unmarshal([]byte(a.body), &got), "body %q", a.body)
			if a.status != test.status || !strings.HasPrefix(got.Error, test.message) || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d, error %q, want %d, %q", a.status, got.Error, test.status, test.message)
			}
			checkHeaders(t, a.header)
		})
	}
}

func checkHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		expect.Equal(t, fmt.Sprintf("header %s", name), want, header.Get(name))
	}
	if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") {
		t.Errorf("Content-Security-Policy is %q", policy)
	}
}

func TestPage(t *testing.T) {
	f := start(t, web.Limits{})
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/index.html": "text/html; charset=utf-8", "/assets/main.js": "text/javascript; charset=utf-8",
		"/assets/base.css": "text/css; charset=utf-8", "/assets/logo.svg": "image/svg+xml",
	} {
		a := f.get(t, http.MethodGet, path)
		if a.status != http.StatusOK || a.header.Get("Content-Type") != contentType || a.body == "" {
			t.Errorf("%s: status %d, type %q, %d bytes", path, a.status, a.header.Get("Content-Type"), len(a.body))
		}
		checkHeaders(t, a.header)
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+path, http.NoBody)
		request.Header.Set("If-None-Match", a.header.Get("ETag"))
		again, err := f.server.Client().Do(request)
		expect.NoError(t, err)
		_ = again.Body.Close()
		expect.Equal(t, fmt.Sprintf("%s: status %s for the same ETag", path, again.Status), http.StatusNotModified, again.StatusCode)
	}
}

func TestSession(t *testing.T) {
	f := start(t, web.Limits{})
	a := f.get(t, http.MethodGet, "/api/v1/session?namespace=ns")
	want := `{"user":"jane","source":"cluster","version":"v1","namespace":"first","full":true,"readOnly":true}`
	if diff := cmp.Diff(want, a.body); diff != "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("session with Cache-Control %q (-want +got):\n%s", a.header.Get("Cache-Control"), diff)
	}
	for _, path := range []string{"/", "/api/v1/session", "/api/v1/stream"} {
		if a := f.get(t, http.MethodHead, path); a.status != http.StatusOK || a.body != "" {
			t.Errorf("HEAD %s: status %d, body %q", path, a.status, a.body)
		}
	}
}

func TestTimeline(t *testing.T) {
	f := start(t, web.Limits{})
	a := f.get(t, http.MethodGet, "/api/v1/timeline?namespace=ns&pod=web-0&since=15m")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"note":"n"`) {
		t.Errorf("status %d, body %s", a.status, a.body)
	}
	q := f.source.query
	if q.Pod.String() != "ns/web-0" || q.Since != 15*time.Minute {
		t.Errorf("query %+v", q)
	}
	// One timeline or set is read at a time.
	const path = "/api/v1/timeline?namespace=ns&pod=web-0&since=15m"
	f.source.reading = func() {
		f.source.reading = nil
		for _, second := range []string{path, "/api/v1/set?namespace=ns&kind=CloneSet&set=web"} {
			if a := f.get(t, http.MethodGet, second); a.status != http.StatusTooManyRequests {
				t.Errorf("%s: status %d, body %s", second, a.status, a.body)
			}
		}
	}
	for range 2 {
		if a := f.get(t, http.MethodGet, path); a.status != http.StatusOK {
			t.Errorf("status %d, body %s", a.status, a.body)
		}
	}
}

func TestSetAndNamespaces(t *testing.T) {
	f := start(t, web.Limits{})
	for path, want := range map[string]string{
		"/api/v1/set?namespace=ns&kind=CloneSet&set=web": `{"waits":[{"name":"web-0","why":"is not ready"}],"waitCount":1,"events":[]}`,
		"/api/v1/namespaces":                             `{"whole":false,"names":["ns"],"shown":["ns"]}`,
	} {
		a := f.get(t, http.MethodGet, path)
		expect.Equal(t, path, want, a.body)
	}
}
