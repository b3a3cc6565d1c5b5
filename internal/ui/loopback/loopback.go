// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback serves the web page on a loopback address, to the user who has started the
// command. Other users of the computer, and pages of other hosts in the user's browser, are kept
// out: the printed URL has a random key, which is exchanged for a cookie, and requests must name a
// loopback host, so that no other host name can be made to lead to the server.
package loopback

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/seamark-dev/seamark/internal/ui"
)

const (
	// keyParameter is the query parameter that has the key.
	keyParameter = "key"
	// headerTimeout limits how long a client may take to send the headers of a request.
	headerTimeout = 10 * time.Second
	// maxHeaderBytes limits the size of the headers.
	maxHeaderBytes = 32 << 10
	// stopTimeout limits how long answers may take after the server has begun to stop.
	stopTimeout = 3 * time.Second
)

// Server is a server on a loopback address.
type Server struct {
	listener net.Listener
	address  netip.AddrPort
	key      string
}

// Listen listens on the address, which must be HOST:PORT with a loopback IP address or localhost.
// The port 0 is a free one.
func Listen(ctx context.Context, address string) (*Server, error) {
	if err := Validate(address); err != nil {
		return nil, err
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, err), listener.Close())
	}
	return &Server{listener: listener, address: bound, key: hex.EncodeToString(random)}, nil
}

// Validate returns an error if the address is not HOST:PORT with a loopback host.
func Validate(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is invalid: must be HOST:PORT, such as 127.0.0.1:0", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is invalid: port %q must be a number from 0 to 65535", address, port)
	}
	if !isLoopback(host) {
		return fmt.Errorf("%q is invalid: the host must be a loopback address, such as 127.0.0.1", address)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// URL returns the URL of the page, which contains the key. The parameters are added to its query.
func (s *Server) URL(parameters url.Values) string {
	query := url.Values{keyParameter: {s.key}}
	for name, values := range parameters {
		query[name] = values
	}
	return (&url.URL{Scheme: "http", Host: s.address.String(), Path: "/", RawQuery: query.Encode()}).String()
}

// Serve answers requests with the handler until ctx ends. Then it calls closing, which must end the
// answers that do not end themselves.
func (s *Server) Serve(ctx context.Context, handler http.Handler, closing func()) error {
	server := &http.Server{
		Handler: s.protect(handler), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeaderBytes,
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
	err := server.Serve(s.listener)
	if stop() {
		closing()
		return fmt.Errorf("serve %s: %w", s.address, errors.Join(err, server.Close()))
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop the server on %s: %w", s.address, err)
	}
	return nil
}

// cookieName has the port, because browsers send cookies to all ports of a host.
func (s *Server) cookieName() string { return fmt.Sprintf("seamark-ui-%d", s.address.Port()) }

// protect answers only requests that have the key as a cookie, and exchanges a key in the URL for the
// cookie.
func (s *Server) protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ui.SetHeaders(w.Header())
		if !s.isOwn(r.Host) {
			ui.WriteError(w, &ui.Refusal{
				Status: http.StatusMisdirectedRequest, Message: fmt.Sprintf("host %q is not this server: open the URL that the command has printed", r.Host),
			})
			return
		}
		query := r.URL.Query()
		if key := query.Get(keyParameter); s.isKey(key) {
			http.SetCookie(w, &http.Cookie{
				Name: s.cookieName(), Value: s.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			query.Del(keyParameter)
			// The key does not stay in the address bar and in the history.
			w.Header().Set("Location", (&url.URL{Path: "/", RawQuery: query.Encode()}).String())
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		if cookie, err := r.Cookie(s.cookieName()); err != nil || !s.isKey(cookie.Value) {
			ui.WriteError(w, &ui.Refusal{
				Status: http.StatusUnauthorized, Message: "the key is missing or wrong: open the URL that the command has printed",
			})
			return
		}
		handler.ServeHTTP(w, r)
	})
}

func (s *Server) isKey(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) == 1
}

// isOwn reports whether the host of a request is a loopback host with the port of the server.
func (s *Server) isOwn(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		// Browsers leave out the default port.
		host, port = hostPort, "80"
	}
	return isLoopback(host) && port == strconv.Itoa(int(s.address.Port()))
}
