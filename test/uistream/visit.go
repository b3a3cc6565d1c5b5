// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uistream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
)

// Visitor is a client that has opened the page.
type Visitor struct {
	// Client has the cookie of the page.
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
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("create cookies: %w", err)
	}
	address := strings.TrimSpace(line)
	base, _, _ := strings.Cut(address, "/?")
	v := &Visitor{Client: &http.Client{Transport: &http.Transport{}, Jar: jar}, Base: base}
	status, body, err := v.Try(ctx, strings.TrimPrefix(address, base))
	if err == nil && (status != http.StatusOK || !strings.Contains(body, "<title>Seamark</title>")) {
		err = fmt.Errorf("page: status %d: %s", status, body)
	}
	return v, err
}

// Try requests a path.
func (v *Visitor) Try(ctx context.Context, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.Base+path, http.NoBody)
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
