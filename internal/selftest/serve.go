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
	// patience is what a request may take.
	patience = 5 * time.Second
	// maxAnswer is the most bytes of an answer that are read.
	maxAnswer = 1024
)

// Serve is what the pod that is marked runs: it answers every request with the pod's name,
// until the context ends.
func Serve(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return serve(ctx, listener, host)
}

func serve(ctx context.Context, listener net.Listener, host string) error {
	server := &http.Server{
		ReadTimeout: patience, WriteTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "hello from %s", host)
		}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// Ask is what the exec probe runs in the pod: it copies the server's answer to out.
func Ask(ctx context.Context, out io.Writer) error {
	return ask(ctx, "http://"+net.JoinHostPort("localhost", strconv.Itoa(port)), out)
}

func ask(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", url, answer.Status)
	}
	if _, err := io.Copy(out, io.LimitReader(answer.Body, maxAnswer)); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	return nil
}
