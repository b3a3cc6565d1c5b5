// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package http runs httpGet probes, judged as the kubelet judges its own.
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

	"github.com/seamark-dev/seamark/internal/probe"
)

const (
	// maxBodyBytes is how much of a response's body is read.
	maxBodyBytes = 10 << 10
	// maxRequests is how many requests one probe makes before it gives up on redirects.
	maxRequests = 10
	// handshakeTimeout bounds a TLS handshake within a longer probe timeout.
	handshakeTimeout = 10 * time.Second
	// leftover is how long a connection may last beyond the timeout of its probe. The
	// timeout itself is the client's, which words it well.
	leftover = time.Second
)

// Prober sends GET requests.
type Prober struct {
	transport *http.Transport
	userAgent string
}

var _ probe.Prober = (*Prober)(nil)

// New returns a prober that calls itself kube-probe/<version> to servers.
func New(version string) *Prober {
	return &Prober{
		userAgent: "kube-probe/" + version,
		// Proxy is left out: the environment of the agent has no say in where probes go.
		transport: &http.Transport{
			DialContext: dial,
			// A container's own certificate seldom names the pod's address.
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet probes
			TLSHandshakeTimeout: handshakeTimeout,
			DisableKeepAlives:   true,
			DisableCompression:  true,
			ForceAttemptHTTP2:   true,
		},
	}
}

// Probe sends one request, follows redirects on the same host, and judges the status:
// 200 to 399 is success, with the body as the message. A redirect to another host is not
// followed, and is a success that says so. No answer in time, or no connection, is a
// failure. A body that breaks off is an error, of which the kubelet too concludes nothing.
func (p *Prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	run, cancel := context.WithTimeout(ctx, target.Timeout+leftover)
	defer cancel()
	request, err := p.request(context.WithValue(run, runKey{}, run), target.HTTP)
	if err != nil {
		return probe.Outcome{}, err
	}
	client := &http.Client{Transport: p.transport, Timeout: target.Timeout, CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if ctx.Err() != nil {
		if err == nil {
			_ = response.Body.Close()
		}
		return probe.Outcome{}, fmt.Errorf("GET %s: %w", target.HTTP.URL, context.Cause(ctx))
	}
	if err != nil {
		return probe.Outcome{TimedOut: probe.TimedOut(err), Message: probe.Message([]byte(err.Error()))}, nil
	}
	defer func() { _ = response.Body.Close() }()

	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return probe.Outcome{}, fmt.Errorf("read the body of GET %s, status %d: %w", target.HTTP.URL, response.StatusCode, err)
	}
	return judge(response.StatusCode, body), nil
}

// runKey is the key of a probe's own context in the context of its request.
type runKey struct{}

// dial connects for the run of one probe. net/http lets a connection that nobody waits
// for any more go on in the hope of a later request, for minutes where a host drops
// packets; here it ends with the probe, and nothing on it lasts longer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	run, ok := ctx.Value(runKey{}).(context.Context)
	if !ok {
		return nil, fmt.Errorf("connect to %s: not for a probe", address)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(run, cancel)() //nolint:contextcheck // ctx holds the values of run and not its end
	conn, err := probe.Dialer().DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	deadline, _ := run.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("bound the connection to %s: %w", address, err)
	}
	return conn, nil
}

// request makes the request of one probe. The target is shared between runs, so its
// header is copied.
func (p *Prober) request(ctx context.Context, target *probe.HTTP) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make the request of GET %s: %w", target.URL, err)
	}
	request.Host = target.Host
	request.Header = headerOf(target.Header, p.userAgent)
	return request, nil
}

// headerOf adds what a probe sends by default. One that is set to the empty string is not
// sent: net/http takes an empty User-Agent as such, an Accept is taken out here.
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

// judge makes an outcome of a complete response.
func judge(status int, body []byte) probe.Outcome {
	switch {
	case status < http.StatusOK || status >= http.StatusBadRequest:
		// The body of a failure is not shown: it may hold what its reader must not see.
		return probe.Outcome{Message: fmt.Sprintf("HTTP probe failed with statuscode: %d", status)}
	case status >= http.StatusMultipleChoices:
		prefix := []byte("Probe terminated redirects, Response body: ")
		return probe.Outcome{Success: true, Message: probe.Message(append(prefix, body...))}
	default:
		return probe.Outcome{Success: true, Message: probe.Message(body)}
	}
}

// checkRedirect ends at the response that points to another host, which a pod's answer
// must not make the node call.
func checkRedirect(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRequests {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
