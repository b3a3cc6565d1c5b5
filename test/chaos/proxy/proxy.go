// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// domain is the end of the server names of clients: a client is known by the name that it sends when it
// connects.
const domain = ".proxy.test"

// Bounds of time and size.
const (
	// handshakeTimeout limits the start of a connection, on either side.
	handshakeTimeout = 10 * time.Second
	// defaultWatchBuffer is the default of Options.WatchBuffer.
	defaultWatchBuffer = 4 << 20
)

// Options configure a proxy.
type Options struct {
	// Upstream is the API server: only its address and how to verify its certificate are used.
	Upstream *rest.Config
	// Address is the TCP address to listen on. Default: a free port of 127.0.0.1.
	Address string
	// Seed selects the requests that a fault with Match.OneIn hits: the n-th request that matches is
	// hit or not, depending on the seed and on how many faults were set before.
	Seed uint64
	// WatchBuffer is how many bytes of events a watch can hold before it ends. It may exceed this
	// by two events. Default: 4 MiB.
	WatchBuffer int
}

// Proxy forwards requests to an API server and injects faults. It is for concurrent use.
type Proxy struct {
	options Options
	address string
	// ca is the certificate with which clients verify the proxy.
	ca []byte

	faults    *faults
	codecs    serializer.CodecFactory
	server    *http.Server
	transport *http.Transport
	reverse   *httputil.ReverseProxy
	// clients and upstream are the connections of either side.
	clients, upstream conns
	served            chan struct{}
	cancel            context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// New starts a proxy without faults. The caller must call Close.
func New(options Options) (*Proxy, error) {
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	if options.WatchBuffer <= 0 {
		options.WatchBuffer = defaultWatchBuffer
	}
	p := &Proxy{
		options: options, faults: newFaults(options.Seed), codecs: newCodecs(), served: make(chan struct{}),
		clients: conns{open: map[*conn]struct{}{}}, upstream: conns{open: map[*conn]struct{}{}},
	}
	if err := p.connect(); err != nil {
		return nil, err
	}
	if err := p.listen(); err != nil {
		return nil, err
	}
	return p, nil
}

// connect configures the requests to the API server.
func (p *Proxy) connect() error {
	config := rest.AnonymousClientConfig(p.options.Upstream)
	target, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, config.CAData != nil || config.CAFile != "" || config.Insecure)
	if err != nil {
		return fmt.Errorf("address of the API server: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return fmt.Errorf("verify the API server: %w", err)
	}
	dialer := &net.Dialer{Timeout: handshakeTimeout}
	// With the defaults of client-go, the proxy finds out as a client does that the API server hangs.
	p.transport = utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: tlsConfig, TLSHandshakeTimeout: handshakeTimeout, DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err //nolint:wrapcheck // A dialer.
			}
			return p.upstream.add(dialed), nil
		},
	})
	p.transport.Proxy = nil
	p.reverse = &httputil.ReverseProxy{
		Transport: p.transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: p.respond, ErrorHandler: p.fail,
	}
	return nil
}

// listen starts the server.
func (p *Proxy) listen() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("proxy", nil, []string{"*" + domain})
	if err != nil {
		return fmt.Errorf("issue a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("issue a certificate: %w", err)
	}
	tcp, err := net.Listen("tcp", p.options.Address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// All certificates, of which clients need only the last: that of the CA.
	p.address, p.ca = tcp.Addr().String(), certificate
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: handshakeTimeout,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, GetConfigForClient: p.greet},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*tls.Conn).NetConn())
		},
	}
	go func() {
		defer close(p.served)
		// It returns when the server is closed.
		_ = p.server.ServeTLS(&listener{Listener: tcp, conns: &p.clients, admit: p.admit}, "", "")
	}()
	return nil
}

// Config returns a configuration for a client with the name, a DNS label: see [Match]. It has no
// credentials, and no rate limit: the caller adds a token. Connections of different names are never
// shared. The host is the address that the proxy listens on.
func (p *Proxy) Config(client string) (*rest.Config, error) {
	if err := validateClient(client); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + p.address, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca, ServerName: client + domain},
	}, nil
}

// Set replaces the faults. They concern requests that arrive from now on, watches that run, and Down
// also connections that exist. An error names the field that is not allowed, and changes nothing.
func (p *Proxy) Set(list ...Fault) error {
	if err := validate(list); err != nil {
		return err
	}
	p.faults.set(list)
	for _, c := range p.clients.of(p.faults.downs) {
		p.down(c)
	}
	return nil
}

// Clear removes all faults.
func (p *Proxy) Clear() { p.faults.set(nil) }

// Counts returns how often each kind of fault was injected since the start. A kind that was not is
// absent.
func (p *Proxy) Counts() map[Kind]Count {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	return maps.Clone(p.faults.counts)
}

// Close ends all connections and waits until no request runs. It may be called again.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	<-p.served
	p.running.Wait()
	all := func(string) bool { return true }
	for _, c := range append(p.clients.of(all), p.upstream.of(all)...) {
		_ = c.Close()
	}
	p.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close the proxy: %w", err)
	}
	return nil
}

// enter counts a request that runs, and returns false if the proxy is closed.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.running.Add(1)
	}
	return !p.closed
}

// down resets a connection that is down, and counts it once.
func (p *Proxy) down(c *conn) {
	if !c.down.Swap(true) {
		p.faults.count(Down, max(0, int(c.running.Swap(0))))
	}
	c.reset()
}

// interrupt resets a connection because a fault of the kind hit one of its requests. It counts first, so
// that a client that gets the error can see the count.
func (p *Proxy) interrupt(kind Kind, c *conn) {
	p.faults.count(kind, max(0, int(c.running.Swap(0))-1))
	c.reset()
}

// admit resets a connection if those of all clients are down.
func (p *Proxy) admit(c *conn) bool {
	if !p.faults.downs("") {
		return true
	}
	p.down(c)
	return false
}

var errDown = errors.New("the connection is down")

// greet learns the name of a client. It resets the connection if those of the client are down.
func (p *Proxy) greet(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c := hello.Conn.(*conn)
	name := strings.TrimSuffix(hello.ServerName, domain)
	// From here on, Set finds the connection. Faults that were set before are found here.
	c.setClient(name)
	if p.faults.downs(name) {
		p.down(c)
		return nil, errDown
	}
	return nil, nil // The server's own configuration.
}
