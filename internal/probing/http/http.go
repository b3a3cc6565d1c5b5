// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package http runs httpGet probes. It evaluates results as the kubelet does.
package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
)

const (
	// maxBodyBytes is how much of a response's body is read.
	maxBodyBytes = 10 << 10
	// maxHeaderBytes bounds a response's header, which is read completely, together with the
	// interim responses before it. In memory, a header of short lines is 16 times as long.
	maxHeaderBytes = 8 << 10
	// maxLocationBytes bounds the address of a redirect: those of a probe are all kept.
	maxLocationBytes = 2 << 10
	// window is how much of a body an HTTP/2 server may send before it is read, in bytes. HTTP/2
	// does not allow less.
	window = 64<<10 - 1
	// maxRequests bounds the requests of one probe, redirects included.
	maxRequests = 10
	// handshakeTimeout bounds a TLS handshake within a longer probe timeout.
	handshakeTimeout = 10 * time.Second
	// overrun is how long a connection may last beyond the timeout of its probe. The
	// client enforces the timeout itself, because its error message is clear.
	overrun = time.Second
)

// Prober sends GET requests.
type Prober struct {
	transport, http2 *http.Transport
	userAgent        string
}

var _ probing.Prober = (*Prober)(nil)

// New returns a prober with the user agent kube-probe/<version>, whose connections are opened by the
// connector.
func New(connector probing.Connector, version string) *Prober {
	// No Proxy: the agent's environment must not redirect probes.
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, connector, network, address)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialTLS(ctx, connector, network, address, "h2", "http/1.1")
		},
		DisableKeepAlives:  true,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window},

		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	// Without HTTP/1, the transport expects that servers without TLS know HTTP/2. A redirect may
	// lead to a server with TLS.
	http2 := transport.Clone()
	http2.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialTLS(ctx, connector, network, address, "h2")
	}
	http2.Protocols = &http.Protocols{}
	http2.Protocols.SetUnencryptedHTTP2(true)
	http2.Protocols.SetHTTP2(true)
	return &Prober{userAgent: "kube-probe/" + version, transport: transport, http2: http2}
}

// Probe sends one request and follows redirects on the same host. A status from 200 to 399
// is success, with the body as the message if the target publishes it. A redirect to another host is not followed; it
// is a success with a message that says so. A timeout or a failed connection is a failure.
// If the body is incomplete, the result is unknown and Probe returns an error, as the
// kubelet does.
func (p *Prober) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	run, cancel := context.WithTimeout(ctx, target.Timeout+overrun)
	defer cancel()
	request, err := p.request(context.WithValue(run, runKey{}, run), target.HTTP)
	if err != nil {
		return probing.Outcome{}, err
	}
	transport := p.transport
	if target.HTTP.HTTP2 {
		transport = p.http2
	}
	client := &http.Client{Transport: transport, Timeout: target.Timeout, CheckRedirect: redirects(target.Again)}
	response, err := client.Do(request)
	if ctx.Err() != nil {
		if err == nil {
			_ = response.Body.Close()
		}
		return probing.Outcome{}, fmt.Errorf("GET %s: %w", target.HTTP.URL, context.Cause(ctx))
	}
	if err != nil {
		if long := (addressError(0)); errors.As(err, &long) {
			err = fmt.Errorf("GET %s: %w", target.HTTP.URL, long) // The client's error begins with the address.
		}
		return probing.Outcome{TimedOut: probing.TimedOut(err), Message: probing.Message([]byte(err.Error()))}, nil
	}
	defer func() { _ = response.Body.Close() }()

	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return probing.Outcome{}, fmt.Errorf("read body of GET %s, status %d: %w", target.HTTP.URL, response.StatusCode, err)
	}
	return evaluate(response.StatusCode, body, target.HTTP.PublishBody), nil
}

// runKey is the key of a run's context in the context of its request.
type runKey struct{}

// dial connects for one run of a probe. It ends the attempt, and everything on the
// connection, with the run. Otherwise, net/http would continue to connect for a later
// request, for minutes if the host drops packets.
func dial(ctx context.Context, connector probing.Connector, network, address string) (net.Conn, error) {
	run, ok := ctx.Value(runKey{}).(context.Context)
	if !ok {
		return nil, fmt.Errorf("connect to %s: context does not belong to a probe", address)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(run, cancel)() //nolint:contextcheck // ctx holds the values of run and not its end
	conn, err := connector.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	deadline, _ := run.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("set deadline of connection to %s: %w", address, err)
	}
	return conn, nil
}

// dialTLS connects as dial does, and starts TLS.
func dialTLS(ctx context.Context, connector probing.Connector, network, address string, protocols ...string) (net.Conn, error) {
	conn, err := dial(ctx, connector, network, address)
	if err != nil {
		return nil, err
	}
	config := probing.TLSConfig()
	config.NextProtos = protocols
	config.ServerName, _, _ = net.SplitHostPort(address)
	limited := probing.Limit(conn, "TLS handshake", probing.MaxHandshakeBytes)
	secured := tls.Client(limited, config)
	shaking, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(shaking); err != nil {
		_ = conn.Close()
		return nil, err // The client compares the type of the error.
	}
	limited.Lift()
	return secured, nil
}

// request builds the request of one run. It copies the header, because runs share the
// target.
func (p *Prober) request(ctx context.Context, target *probing.HTTP) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("build request GET %s: %w", target.URL, err)
	}
	request.Host = target.Host
	request.Header = headerOf(target.Header, p.userAgent)
	return request, nil
}

// headerOf adds the default User-Agent and Accept. Each is omitted if it is set to the
// empty string: net/http omits an empty User-Agent itself.
func headerOf(given http.Header, userAgent string) http.Header {
	header := given.Clone()
	if header == nil {
		header = http.Header{}
	}
	if _, set := header["User-Agent"]; !set {
		header.Set("User-Agent", userAgent)
	}
	if _, set := header["Accept"]; !set {
		header.Set("Accept", "*/*")
	} else if header.Get("Accept") == "" {
		header.Del("Accept")
	}
	return header
}

// evaluate returns the outcome of a complete response. The message of a failure never contains
// the body.
func evaluate(status int, body []byte, publishBody bool) probing.Outcome {
	switch {
	case status < http.StatusOK || status >= http.StatusBadRequest:
		return probing.Outcome{Message: fmt.Sprintf("HTTP probe failed with statuscode: %d", status)}
	case !publishBody && status >= http.StatusMultipleChoices:
		return probing.Outcome{Success: true, Message: fmt.Sprintf("HTTP probe terminated redirects with statuscode: %d", status)}
	case !publishBody:
		return probing.Outcome{Success: true, Message: fmt.Sprintf("HTTP probe succeeded with statuscode: %d", status)}
	case status >= http.StatusMultipleChoices:
		prefix := []byte("Probe terminated redirects, Response body: ")
		return probing.Outcome{Success: true, Message: probing.Message(append(prefix, body...))}
	default:
		return probing.Outcome{Success: true, Message: probing.Message(body)}
	}
}

// redirects returns the function that decides on redirects, which calls again for each that is followed.
func redirects(again func(tls bool)) func(next *http.Request, before []*http.Request) error {
	return func(next *http.Request, before []*http.Request) error {
		err := checkRedirect(next, before)
		if err == nil && again != nil {
			again(next.URL.Scheme == "https")
		}
		return err
	}
}

// checkRedirect does not follow redirects to another host: a pod must not make the node
// send requests elsewhere.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRequests {
		return errors.New("stopped after 10 redirects")
	}
	if size := len(next.URL.String()); size > maxLocationBytes {
		return addressError(size)
	}
	// The client keeps all responses until the end of the run.
	next.Response.Header, next.Response.TLS, next.Response = nil, nil, nil
	return nil
}

// addressError is the size of the address of a redirect that is too long.
type addressError int

func (e addressError) Error() string {
	return fmt.Sprintf("redirect to an address of %d bytes, must have at most %d", int(e), maxLocationBytes)
}
