// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/seamark-dev/seamark/internal/program/serving"
)

const (
	// maxConnections leaves connections to requests when there are as many streams as Limits permit.
	maxConnections = 256
	// stopTimeout limits how long answers may take after the server has begun to stop.
	stopTimeout = 2 * time.Second
)

// Serve answers requests with the handler until ctx ends. Then it calls closing, which must end the
// answers that do not end themselves. maxHeader limits the size of the headers of a request in bytes.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, maxHeader int, closing func()) error {
	return serving.Serve(ctx, listener, handler, serving.Options{ //nolint:wrapcheck // it names the address
		Header: maxHeader, Connections: maxConnections, Streams: true, Drain: stopTimeout, Closing: closing,
	})
}
