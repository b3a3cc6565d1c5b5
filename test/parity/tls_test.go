// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

func https(a *corev1.HTTPGetAction) { a.Scheme = corev1.URISchemeHTTPS }

// certificate returns a self-signed certificate, edited before it is signed.
func certificate(t *testing.T, edit func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "game"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	edit(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// overTLS serves HTTP over TLS, or HTTP/2 if h2 is set. It records the protocol and the headers of
// each request.
func overTLS(config func(*testing.T) *tls.Config, h2 bool, handle http.HandlerFunc) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		var self *peer
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			self.note(fmt.Sprint(r.Proto, " ", r.Host, " ", r.URL, " ", r.Header))
			handle(w, r)
		}))
		self = newPeer(t, server.Listener.Addr().String())
		server.TLS, server.EnableHTTP2 = config(t), h2
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.CloseClientConnections)
		t.Cleanup(server.Close)
		return self
	}
}

func with(edit func(*x509.Certificate), more ...func(*tls.Config)) func(*testing.T) *tls.Config {
	return func(t *testing.T) *tls.Config {
		t.Helper()
		config := &tls.Config{Certificates: []tls.Certificate{certificate(t, edit)}, MinVersion: tls.VersionTLS10}
		for _, m := range more {
			m(config)
		}
		return config
	}
}

func valid(*x509.Certificate) {}

func yes(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// TestTLS probes servers with various certificates and protocols.
func TestTLS(t *testing.T) {
	most := func(version uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MaxVersion = version }
	}
	cases := map[string]struct {
		serve func(*testing.T) *peer
		want  conclusion
	}{
		"self-signed":   {overTLS(with(valid), false, yes), success},
		"expired":       {overTLS(with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), false, yes), success},
		"not yet valid": {overTLS(with(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), false, yes), success},
		"other name":    {overTLS(with(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"x.example.com"} }), false, yes), success},
		"no name":       {overTLS(with(func(c *x509.Certificate) { c.IPAddresses, c.Subject = nil, pkix.Name{} }), false, yes), success},
		"client certificate": {overTLS(with(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), false, yes), success},
		"TLS 1.3":                       {overTLS(with(valid, func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }), false, yes), success},
		"TLS 1.2":                       {overTLS(with(valid, most(tls.VersionTLS12)), false, yes), success},
		"TLS 1.1":                       {overTLS(with(valid, most(tls.VersionTLS11)), false, yes), failure},
		"TLS 1.0":                       {overTLS(with(valid, most(tls.VersionTLS10)), false, yes), failure},
		"requests a client certificate": {overTLS(with(valid, func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert }), false, yes), success},
		"HTTP/2":                        {overTLS(with(valid), true, yes), success},
		"HTTP/2, failed":                {overTLS(with(valid), true, statusOf(500)), failure},
		"HTTP/2, 204":                   {overTLS(with(valid), true, statusOf(204)), success},
		"HTTP/2, 399":                   {overTLS(with(valid), true, statusOf(399)), success},
		"HTTP/2, 600":                   {overTLS(with(valid), true, statusOf(600)), failure},
		"HTTP/2, huge": {
			overTLS(with(valid), true, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }), success,
		},
		"HTTP/2, redirect":        {overTLS(with(valid), true, redirectOnce("/b")), success},
		"HTTP/2, elsewhere":       {overTLS(with(valid), true, redirectOnce("https://example.com/")), success},
		"HTTP/2, stream reset":    {overTLS(with(valid), true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), failure},
		"HTTP/2, body reset":      {overTLS(with(valid), true, abortInBody), nothing},
		"HTTP/1.1, body reset":    {overTLS(with(valid), false, abortInBody), nothing},
		"plain HTTP":              {plain(say("HTTP/1.1 400 Bad\r\n\r\nClient sent plain")), failure},
		"invalid TLS":             {plain(say("nonsense")), failure},
		"closes in the handshake": {plain(say("")), failure},
		"resets the handshake":    {plain(reset), failure},
		"refused":                 {refusing(), failure},
		"silent in the handshake": {plain(linger), failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout, messages := ample, verbatim
			switch name {
			case "silent in the handshake":
				timeout = time.Second
			case "resets the handshake", "invalid TLS", "closes in the handshake":
				// Which call of the client fails is random.
				messages = skipMessages
			}
			compare(t, httpGet(https, headers("Host", "game.example.com", "X-Game", "a")), tc.serve, timeout, tc.want, messages)
		})
	}
}

// TestTLSDemandsClient probes a server that requires a client certificate. With TLS 1.3, the error
// comes after the handshake: which call of the client fails is random.
func TestTLSDemandsClient(t *testing.T) {
	demand := func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }
	compare(t, httpGet(https), overTLS(with(valid, demand), false, yes), ample, failure, skipMessages)
}

// TestHTTPToTLS sends plain HTTP to a TLS server.
func TestHTTPToTLS(t *testing.T) {
	compare(t, httpGet(), overTLS(with(valid), true, yes), ample, failure, verbatim)
}

func statusOf(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirectOnce(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, location, http.StatusFound)
			return
		}
		yes(w, r)
	}
}

func abortInBody(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, "half")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// plain responds without TLS after the client's first bytes.
func plain(reply answer) func(*testing.T) *peer {
	return silent(func(t *testing.T) string {
		return probetest.Serve(t, func(conn net.Conn) {
			if _, err := conn.Read(make([]byte, 4096)); err == nil {
				reply(conn, &peer{ip: "127.0.0.1"}, 0)
			}
		})
	})
}
