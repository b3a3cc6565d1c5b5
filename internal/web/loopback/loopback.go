// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback serves the web page on a loopback address, to the user who has started the
// command. Other users of the computer, other local servers, and pages of other hosts in the user's
// browser are kept out:
//
//   - The files of the page are served to everybody; they contain no data.
//   - The API requires a session in a header, which browsers never add by themselves: a cookie would
//     be sent to the servers of all ports.
//   - The printed URL has a random key in its fragment, which is not part of requests. The page
//     exchanges it for the session. A key opens the page once, and then another one is valid, so an
//     old URL in the history of the browser or in a list of processes is worth nothing.
//   - Requests must name a loopback host, so that no other host name can be made to lead to the
//     server.
package loopback

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/program/serving"
	"github.com/seamark-dev/seamark/internal/web"
)

const (
	// keyParameter is the parameter in the fragment of the URL that has the key.
	keyParameter = "key"
	// KeyHeader is the header of a request to EnterPath that has the key.
	KeyHeader = "Seamark-Key"
	// SessionHeader is the header that has the session. Other sites cannot send it: browsers would
	// ask the server before, which does not allow it.
	SessionHeader = "Seamark-Session"
	// EnterPath is where the page exchanges the key for a session, with POST.
	EnterPath = "/api/v1/enter"
	// maxHeaderBytes limits the size of the headers.
	maxHeaderBytes = 32 << 10
	// maxConnections leaves connections to requests when there are as many streams as web.Limits permit.
	maxConnections = 256
	// stopTimeout limits how long answers may take after the server has begun to stop.
	stopTimeout = 2 * time.Second
)

// Server is a server on a loopback address.
type Server struct {
	// Opened is called each time the key was used. From then on, URL returns another one. It may be
	// nil, and must be set before Serve.
	Opened func()

	listener net.Listener
	address  netip.AddrPort
	session  string

	mu  sync.Mutex
	key string
}

// Entry is the answer to a request that has the key.
type Entry struct {
	// Session is the value of SessionHeader in all other requests.
	Session string `json:"session"`
}

// Listen listens on the address, which must be HOST:PORT with a loopback IP address or localhost.
// The port 0 is a free one.
func Listen(ctx context.Context, address string) (*Server, error) {
	if err := Validate(address); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, err), listener.Close())
	}
	return &Server{listener: listener, address: bound, session: rand.Text(), key: rand.Text()}, nil
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

// URL returns the URL of the page with the parameters. It contains the key, which opens the page
// once.
func (s *Server) URL(parameters url.Values) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := url.URL{
		Scheme: "http", Host: s.address.String(), Path: "/", RawQuery: parameters.Encode(),
		Fragment: url.Values{keyParameter: {s.key}}.Encode(),
	}
	return address.String()
}

// Serve answers requests with the handler until ctx ends. Then it calls closing, which must end the
// answers that do not end themselves.
func (s *Server) Serve(ctx context.Context, handler http.Handler, closing func()) error {
	return serving.Serve(ctx, s.listener, s.protect(handler), serving.Options{ //nolint:wrapcheck // it names the address
		Header: maxHeaderBytes, Connections: maxConnections, Streams: true, Drain: stopTimeout, Closing: closing,
	})
}

// protect serves the files of the page to everybody, and answers other requests only if they have the
// session.
func (s *Server) protect(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.SetHeaders(w.Header())
		switch {
		case !s.isOwn(r.Host):
			web.WriteError(w, &web.Refusal{
				Status: http.StatusMisdirectedRequest, Message: fmt.Sprintf("host %q is not this server: open the URL that the command has printed", r.Host),
			})
		case r.URL.Path == EnterPath && r.Method == http.MethodPost:
			s.enter(w, r)
		case isFile(r.URL) || equal(r.Header.Get(SessionHeader), s.session):
			// The handler has no use for the secret.
			r.Header.Del(SessionHeader)
			handler.ServeHTTP(w, r)
		default:
			web.WriteError(w, &web.Refusal{
				Status: http.StatusUnauthorized, Message: "this browser has no session: open the last URL that the command has printed",
			})
		}
	})
}

// enter answers with the session if the request has the key.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	if !s.use(r.Header.Get(KeyHeader)) {
		web.WriteError(w, &web.Refusal{
			Status: http.StatusUnauthorized, Message: "the key was used before or is wrong: open the last URL that the command has printed",
		})
		return
	}
	if s.Opened != nil {
		s.Opened()
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(Entry{Session: s.session})
}

// use reports whether it is the key, which it then replaces.
func (s *Server) use(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !equal(key, s.key) {
		return false
	}
	s.key = rand.Text()
	return true
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isFile reports whether a URL is that of a file of the page. No part of it may be read differently by
// the handler.
func isFile(u *url.URL) bool {
	return u.Path == "/" || strings.HasPrefix(u.Path, "/assets/") && path.Clean(u.Path) == u.Path && u.RawPath == ""
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
