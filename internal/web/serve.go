// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout limits how long a client may take to send the headers of a request.
	headerTimeout = 10 * time.Second
	// stopTimeout limits how long answers may take after the server has begun to stop.
	stopTimeout = 2 * time.Second
)

// Serve answers requests with the handler until ctx ends. Then it calls closing, which must end the
// answers that do not end themselves. maxHeader limits the size of the headers of a request in bytes.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, maxHeader int, closing func()) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		closing()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err := server.Shutdown(limited)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		stopped <- err
	})
	err := server.Serve(listener)
	if stop() {
		closing()
		return fmt.Errorf("serve %s: %w", listener.Addr(), errors.Join(err, server.Close()))
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop the server on %s: %w", listener.Addr(), err)
	}
	return nil
}
