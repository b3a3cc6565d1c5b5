// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	// requestTimeout is the timeout of a request.
	requestTimeout = 5 * time.Second
	// maxAnswer is the maximum number of bytes read from a response.
	maxAnswer = 1024
)

// Serve runs in the marked pod. It responds to every request with the pod's name, until the
// context ends.
func Serve(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the pod's name: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return serve(ctx, listener, host)
}

func serve(ctx context.Context, listener net.Listener, host string) error {
	server := &http.Server{
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "hello from %s", host)
		}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Ask is the exec probe. It copies the response of the pod's server to out.
func Ask(ctx context.Context, out io.Writer) error {
	return ask(ctx, "http://"+net.JoinHostPort("localhost", strconv.Itoa(port)), out)
}

func ask(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("create the request to %s: %w", url, err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("request to %s: status %s", url, response.Status)
	}
	if _, err := io.Copy(out, io.LimitReader(response.Body, maxAnswer)); err != nil {
		return fmt.Errorf("read the response of %s: %w", url, err)
	}
	return nil
}
