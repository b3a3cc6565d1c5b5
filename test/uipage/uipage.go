// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uipage runs `seamark ui` in tests.
package uipage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli"
)

// Page is a running `seamark ui`.
type Page struct {
	testing.TB
	// Client has the cookie of the page.
	Client *http.Client
	// Base is the URL without a slash at the end.
	Base string
	// Errors is what the command printed on standard error before the URL.
	Errors *bytes.Buffer
}

// Serve runs `seamark ui` with the arguments until the test ends, and opens the page.
func Serve(tb testing.TB, args ...string) *Page {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Page{TB: tb, Client: &http.Client{Transport: &http.Transport{}, Jar: jar}, Errors: &bytes.Buffer{}}
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	command := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: p.Errors}, "seamark", "test")
	command.SetArgs(append([]string{"ui"}, args...))
	done := make(chan error, 1)
	go func() {
		err := command.ExecuteContext(ctx)
		_ = writer.Close()
		done <- err
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("seamark ui: %v", err)
		}
		p.Client.CloseIdleConnections()
	})
	if err != nil {
		tb.Fatalf("the command printed no URL: %v; %s", err, p.Errors)
	}
	address := strings.TrimSpace(line)
	p.Base, _, _ = strings.Cut(address, "/?")
	if status, body := p.Get(strings.TrimPrefix(address, p.Base)); status != http.StatusOK || !strings.Contains(body, "<title>Seamark</title>") {
		tb.Fatalf("page: status %d: %s", status, body)
	}
	return p
}

// Get returns the answer to a request for a path.
func (p *Page) Get(path string) (status int, body string) {
	p.Helper()
	status, body, err := p.Try(p.Context(), path)
	if err != nil {
		p.Fatal(err)
	}
	return status, body
}

// Try requests a path.
func (p *Page) Try(ctx context.Context, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Base+path, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("request %s: %w", path, err)
	}
	response, err := p.Client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("request %s: %w", path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return response.StatusCode, string(text), nil
}

// Read returns the JSON of a path.
func Read[T any](p *Page, path string) T {
	p.Helper()
	status, body := p.Get(path)
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil || status != http.StatusOK {
		p.Fatalf("%s: status %d, error %v: %s", path, status, err, body)
	}
	return value
}
