// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/ui/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a server whose handler answers with the URL, and how often closing was called.
func serve(t *testing.T) (server *loopback.Server, stop func() int) {
	t.Helper()
	server, err := loopback.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	closed := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.String()) })
	go func() { done <- server.Serve(ctx, handler, func() { closed++ }) }()
	stop = func() int {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
		done <- nil
		return closed
	}
	t.Cleanup(func() { stop() })
	return server, stop
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: jar}
}

// answer is an answer that has been read.
type answer struct {
	status int
	body   string
	// cookie is the header Set-Cookie of the redirect to the answer.
	cookie string
}

func get(t *testing.T, client *http.Client, address, host string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, body: string(body)}
	if redirect := response.Request.Response; redirect != nil {
		a.cookie = redirect.Header.Get("Set-Cookie")
	}
	return a
}

func TestKeyIsExchangedForACookie(t *testing.T) {
	server, stop := serve(t)
	client := newClient(t)
	page := server.URL(url.Values{"namespace": {"ns"}})
	base, _, _ := strings.Cut(page, "?")

	if a := get(t, client, base, ""); a.status != http.StatusUnauthorized || !strings.Contains(a.body, "the key is missing or wrong") {
		t.Errorf("without the key: status %d, body %s", a.status, a.body)
	}
	if a := get(t, client, base+"?key=wrong", ""); a.status != http.StatusUnauthorized {
		t.Errorf("with a wrong key: status %d", a.status)
	}
	a := get(t, client, page, "")
	if a.status != http.StatusOK || a.body != "page /?namespace=ns" || !strings.Contains(a.cookie, "; HttpOnly; SameSite=Strict") {
		t.Errorf("with the key: status %d, body %q, cookie %q", a.status, a.body, a.cookie)
	}
	if a := get(t, client, base+"api/v1/session", ""); a.status != http.StatusOK || a.body != "page /api/v1/session" {
		t.Errorf("with the cookie: status %d, body %q", a.status, a.body)
	}
	client.CloseIdleConnections()
	if closed := stop(); closed != 1 {
		t.Errorf("closing was called %d times, want once", closed)
	}
}

// A page of another host, whose name leads to the loopback address, is not served, even with the key.
func TestHost(t *testing.T) {
	server, _ := serve(t)
	client := newClient(t)
	address, _ := url.Parse(server.URL(nil))
	port := address.Port()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusSeeOther, "localhost:" + port: http.StatusSeeOther, "[::1]:" + port: http.StatusSeeOther,
		"evil.example:" + port: http.StatusMisdirectedRequest, "127.0.0.1": http.StatusMisdirectedRequest, "127.0.0.1:1": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example:" + port: http.StatusMisdirectedRequest, "10.0.0.1:" + port: http.StatusMisdirectedRequest,
	} {
		if a := get(t, client, address.String(), host); a.status != want {
			t.Errorf("host %s: status %d, want %d: %s", host, a.status, want, a.body)
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
		if got != want {
			t.Errorf("Validate(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	server, _ := serve(t)
	address, _ := url.Parse(server.URL(nil))
	if _, err := loopback.Listen(t.Context(), address.Host); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Listen() = %v", err)
	}
}
