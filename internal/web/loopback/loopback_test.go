// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/web/loopback"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a server whose handler answers with the URL, and how often closing was called.
func serve(t *testing.T) (server *loopback.Server, stop func() int) {
	t.Helper()
	server, err := loopback.Listen(t.Context(), "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	closed := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page "+r.URL.String()+r.Header.Get(loopback.SessionHeader))
	})
	go func() { done <- server.Serve(ctx, handler, func() { closed++ }) }()
	stop = func() int {
		cancel()
		expect.NoError(t, <-done)
		done <- nil
		return closed
	}
	t.Cleanup(func() { stop() })
	return server, stop
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// send sends a request with headers, and returns the status and the body of the answer.
func send(t *testing.T, client *http.Client, method, address string, header map[string]string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	expect.NoError(t, err)
	request.Host = header["Host"]
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	expect.NoError(t, err)
	defer response.Body.Close()
	if cookies := response.Header.Values("Set-Cookie"); len(cookies) > 0 {
		t.Errorf("%s: cookies %q, want none: browsers send them to all ports", address, cookies)
	}
	text, err := io.ReadAll(response.Body)
	expect.NoError(t, err)
	return response.StatusCode, string(text)
}

// parse returns the base of the URL that a command prints, its query, and its key.
func parse(t *testing.T, printed string) (base, query, key string) {
	t.Helper()
	u, err := url.Parse(printed)
	expect.NoError(t, err)
	fragment, err := url.ParseQuery(u.Fragment)
	expect.NoError(t, err)
	return "http://" + u.Host, u.RawQuery, fragment.Get("key")
}

func TestKeyIsExchangedOnce(t *testing.T) {
	server, stop := serve(t)
	opened := 0
	server.Opened = func() { opened++ }
	client := newClient(t)
	base, query, key := parse(t, server.URL(url.Values{"namespace": {"ns"}}))
	if query != "namespace=ns" || len(key) < 26 {
		t.Errorf("query %q and key %q", query, key)
	}
	enter := func(key string) (status int, session string) {
		status, body := send(t, client, http.MethodPost, base+loopback.EnterPath, map[string]string{loopback.KeyHeader: key})
		var entry loopback.Entry
		if err := json.Unmarshal([]byte(body), &entry); err != nil {
			t.Errorf("body %q: %v", body, err)
		}
		return status, entry.Session
	}

	const path = "/api/v1/session?namespace=ns"
	read := func(name, value string) (status int, body string) {
		return send(t, client, http.MethodGet, base+path, map[string]string{name: value})
	}
	for _, wrong := range []string{"", "wrong"} {
		if status, _ := enter(wrong); status != http.StatusUnauthorized {
			t.Errorf("key %q: status %d, want 401", wrong, status)
		}
		if status, body := read(loopback.SessionHeader, wrong); status != http.StatusUnauthorized || !strings.Contains(body, "this browser has no session") {
			t.Errorf("session %q: status %d, body %q, want 401", wrong, status, body)
		}
	}
	status, session := enter(key)
	if status != http.StatusOK || session == "" || opened != 1 {
		t.Fatalf("status %d, session %q, opened %d times", status, session, opened)
	}
	// The body shows that the handler, which may send requests to another server, does not get the session.
	if status, body := read(loopback.SessionHeader, session); status != http.StatusOK || body != "page "+path {
		t.Errorf("with the session: status %d, body %q", status, body)
	}
	for name, value := range map[string]string{"Cookie": "session=" + session, "Authorization": "Bearer " + session, loopback.SessionHeader: key} {
		if status, _ := read(name, value); status != http.StatusUnauthorized {
			t.Errorf("%s: %s: status %d, want 401", name, value, status)
		}
	}
	if status, _ := enter(key); status != http.StatusUnauthorized {
		t.Errorf("the same key again: status %d, want 401", status)
	}
	if _, _, next := parse(t, server.URL(nil)); next == key {
		t.Error("the URL has the same key again")
	} else if status, again := enter(next); status != http.StatusOK || again != session || opened != 2 {
		t.Errorf("the next key: status %d, session %q, opened %d times", status, again, opened)
	}
	client.CloseIdleConnections()
	expect.Equal(t, "calls of closing", 1, stop())
}

// The files of the page have no data. All other paths require the session.
func TestFilesNeedNoSession(t *testing.T) {
	server, _ := serve(t)
	client := newClient(t)
	base, _, _ := parse(t, server.URL(nil))
	for path, want := range map[string]int{
		"/": 200, "/?namespace=ns": 200, "/assets/main.js": 200,
		"/api/v1/stream": 401, "//api/v1/stream": 401, "/assets/../api/v1/stream": 401, "/assets/%2e%2e/api/v1/stream": 401, "/assets/..%2fapi": 401,
		"/%61pi/v1/stream": 401, "/assets": 401, "/other": 401, loopback.EnterPath: 401,
	} {
		if status, body := send(t, client, http.MethodGet, base+path, nil); status != want {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
}

// A page of another host, whose name leads to the loopback address, is not served, even with the key.
func TestHost(t *testing.T) {
	server, _ := serve(t)
	client := newClient(t)
	address, _ := url.Parse(server.URL(nil))
	address.Fragment = ""
	port := address.Port()
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK, "[::1]:" + port: http.StatusOK,
		"evil.example:" + port: http.StatusMisdirectedRequest, "127.0.0.1": http.StatusMisdirectedRequest, "127.0.0.1:1": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example:" + port: http.StatusMisdirectedRequest, "10.0.0.1:" + port: http.StatusMisdirectedRequest,
	} {
		if status, body := send(t, client, http.MethodGet, address.String(), map[string]string{"Host": host}); status != want {
			t.Errorf("host %s: status %d, want %d: %s", host, status, want, body)
		}
	}
}

func TestValidate(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:0": "", "localhost:8080": "", "[::1]:0": "", "127.1.2.3:65535": "",
		"0.0.0.0:80":      `"0.0.0.0:80" is invalid: the host must be a loopback address, such as 127.0.0.1`,
		":80":             `":80" is invalid: the host must be a loopback address, such as 127.0.0.1`,
		"example.com:80":  `"example.com:80" is invalid: the host must be a loopback address, such as 127.0.0.1`,
		"127.0.0.1":       `"127.0.0.1" is invalid: must be HOST:PORT, such as 127.0.0.1:0`,
		"127.0.0.1:http":  `"127.0.0.1:http" is invalid: port "http" must be a number from 0 to 65535`,
		"127.0.0.1:65536": `"127.0.0.1:65536" is invalid: port "65536" must be a number from 0 to 65535`,
	} {
		got := ""
		if err := loopback.Validate(address); err != nil {
			got = err.Error()
		}
		expect.Equal(t, fmt.Sprintf("Validate(%q)", address), want, got)
	}
}

func TestAddressInUse(t *testing.T) {
	server, _ := serve(t)
	address, _ := url.Parse(server.URL(nil))
	if _, err := loopback.Listen(t.Context(), address.Host); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Listen() = %v", err)
	}
}
