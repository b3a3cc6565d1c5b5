// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uistream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/seamark-dev/seamark/internal/web/loopback"
)

// Visitor is a client that has opened the page.
type Visitor struct {
	// Client sends the session of the page.
	Client *http.Client
	// Base is the URL without a slash at the end.
	Base string
}

// Visit reads the URL from the output of the command, and opens the page.
func Visit(ctx context.Context, output io.Reader) (*Visitor, error) {
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	return Enter(ctx, strings.TrimSpace(line))
}

// Enter opens the page whose URL a command has printed.
func Enter(ctx context.Context, address string) (*Visitor, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parse the URL: %w", err)
	}
	fragment, err := url.ParseQuery(parsed.Fragment)
	if err != nil {
		return nil, fmt.Errorf("parse the fragment of %s: %w", address, err)
	}
	transport := &withHeader{Transport: &http.Transport{}}
	v := &Visitor{Client: &http.Client{Transport: transport}, Base: parsed.Scheme + "://" + parsed.Host}
	status, body, err := v.Try(ctx, parsed.RequestURI())
	if err == nil && (status != http.StatusOK || !strings.Contains(body, "<title>Seamark</title>")) {
		err = fmt.Errorf("page: status %d: %s", status, body)
	}
	if err != nil {
		return v, err
	}
	transport.name, transport.value = loopback.KeyHeader, fragment.Get("key")
	status, body, err = v.do(ctx, http.MethodPost, loopback.EnterPath)
	if err != nil {
		return v, err
	}
	var entry loopback.Entry
	if err := json.Unmarshal([]byte(body), &entry); err != nil || status != http.StatusOK {
		return v, fmt.Errorf("enter: status %d: %s", status, body)
	}
	transport.name, transport.value = loopback.SessionHeader, entry.Session
	return v, nil
}

// withHeader adds a header to all requests, if it has a name.
type withHeader struct {
	*http.Transport
	name, value string
}

// RoundTrip implements http.RoundTripper.
func (h *withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.name != "" {
		r = r.Clone(r.Context())
		r.Header.Set(h.name, h.value)
	}
	return h.Transport.RoundTrip(r) //nolint:wrapcheck // a transport returns the errors of another
}

// Try requests a path.
func (v *Visitor) Try(ctx context.Context, path string) (status int, body string, err error) {
	return v.do(ctx, http.MethodGet, path)
}

func (v *Visitor) do(ctx context.Context, method, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, v.Base+path, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("request %s: %w", path, err)
	}
	response, err := v.Client.Do(request)
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
