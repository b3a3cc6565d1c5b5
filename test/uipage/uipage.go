// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uipage runs `seamark ui` in tests.
package uipage

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/uistream"
)

// Page is a running `seamark ui`.
type Page struct {
	testing.TB
	*uistream.Visitor
	// Errors is what the command printed on standard error before the URL.
	Errors *bytes.Buffer
}

// Serve runs `seamark ui` with the arguments until the test ends, and opens the page.
func Serve(tb testing.TB, args ...string) *Page {
	tb.Helper()
	p := &Page{TB: tb, Errors: &bytes.Buffer{}}
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
	visitor, err := uistream.Visit(tb.Context(), reader)
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("seamark ui: %v", err)
		}
		if visitor != nil {
			visitor.Client.CloseIdleConnections()
		}
	})
	if err != nil {
		tb.Fatalf("open the page: %v; %s", err, p.Errors)
	}
	p.Visitor = visitor
	return p
}

// Get returns the answer to a request for a path.
func (p *Page) Get(path string) (status int, body string) {
	p.Helper()
	status, body, err := p.Try(p.Context(), path)
	expect.NoError(p, err)
	return status, body
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
