// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving serves HTTP to clients that may be hostile: anything in the cluster can reach the ports of
// pods and nodes. What a client costs is bounded before it has sent a complete request, and clients that send
// nothing, endless headers or endless bodies, or that do not read their answers, do not keep others out.
package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// defaultHeader limits the headers of a request in bytes.
	defaultHeader = 8 << 10
	// defaultConnections limits the connections of a server.
	defaultConnections = 64
	// maxStreams limits the requests at the same time on a connection with HTTP/2.
	maxStreams = 1000
	// headerTimeout limits the time for a TLS handshake, and that for the headers of a request.
	headerTimeout = 5 * time.Second
	// idleTimeout is longer than the usual interval of Prometheus, which keeps its connections.
	idleTimeout = 65 * time.Second
	// writeTimeout limits the time for an answer. The handlers of profiles add the time that they measure.
	writeTimeout = 30 * time.Second
	// logInterval is the time between two lines of the log about connections.
	logInterval = time.Second
)

// Options configure a server. The zero value is for health checks, metrics and profiles.
type Options struct {
	// Header limits the headers of a request in bytes. Zero means 8 KiB.
	Header int
	// Connections limits the connections. A further one replaces the oldest without a complete request. Zero
	// means 64.
	Connections int
	// Streams is whether answers may take any time. If not, an answer has 30 seconds, and if all connections
	// have complete requests, a further one replaces the one that is answered for the longest time.
	Streams bool
	// TLS is set if the server uses TLS, and then HTTP/2, too.
	TLS *tls.Config
	// Bodies is whether requests may have bodies. If so, the handler must limit them, and call Complete once
	// it has read them. If not, they are refused.
	Bodies bool
	// Drain is how long answers may take after the context has ended.
	Drain time.Duration
	// Closing is called when the context ends. It ends the answers that do not end themselves, and may be nil.
	Closing func()
}

// Serve answers requests with the handler until ctx ends. It closes the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, options Options) error {
	bounded := newConnections(listener, cmp.Or(options.Connections, defaultConnections), options.Streams)
	server := options.server(ctx, handler)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- options.stop(ctx, server) })
	serve := server.Serve
	if options.TLS != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	err := serve(bounded)
	if stop() {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), errors.Join(err, options.stop(ctx, server)))
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop the server on %s: %w", listener.Addr(), err)
	}
	return nil
}

func (o Options) server(ctx context.Context, handler http.Handler) *http.Server {
	if !o.Bodies {
		handler = withoutBodies(handler)
	}
	server := &http.Server{
		Handler: handler, TLSConfig: o.TLS, MaxHeaderBytes: cmp.Or(o.Header, defaultHeader),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		// An API server opens one connection more for each request beyond the streams. The others limit what
		// clients send before it is read.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 64 << 10,
		},
		ErrorLog:    log.New(&seldom{rate.Sometimes{Interval: logInterval}}, "", 0),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: withConnection,
	}
	if !o.Streams {
		server.WriteTimeout = writeTimeout
	}
	return server
}

func (o Options) stop(ctx context.Context, server *http.Server) error {
	if o.Closing != nil {
		o.Closing()
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
	defer cancel()
	if err := server.Shutdown(limited); !errors.Is(err, context.DeadlineExceeded) {
		return err //nolint:wrapcheck // the caller says what failed
	}
	return server.Close() //nolint:wrapcheck // as above
}

// withoutBodies refuses requests with bodies, which are not read.
func withoutBodies(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			Refuse(w, http.StatusRequestEntityTooLarge, "the request must not have a body")
			return
		}
		defer Complete(r)()
		handler.ServeHTTP(w, r)
	})
}

// Refuse answers with the status and the message, and reads nothing more of the request.
func Refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Connection", "close")
	// Otherwise, the server reads the rest of the body. Servers that tests record have no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	http.Error(w, message, status)
}

// seldom writes at most one line per interval to the log, because clients cause lines.
type seldom struct{ limit rate.Sometimes }

// Write drops the line if the last one is not long ago.
func (s *seldom) Write(line []byte) (int, error) {
	s.limit.Do(func() { log.Print(string(line)) })
	return len(line), nil
}
