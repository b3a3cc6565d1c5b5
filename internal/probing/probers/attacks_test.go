// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probers

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/expect"
)

// attack is a server that costs its clients memory.
type attack struct {
	target func(t *testing.T, address string) probing.Target
	// reply answers on a connection. It returns whether the connection stays open.
	reply func(net.Conn) (stall bool)
	// refused reports whether the probes fail instead of waiting for the rest of the answer.
	refused bool
}

func attacks(t *testing.T) map[string]attack {
	const okay = "HTTP/1.1 200 OK\r\n"
	settings := frame(4, 0, 0, nil)
	return map[string]attack{
		"no answer":                 {target: web("http"), reply: say("")},
		"header of 64 KiB":          {target: web("http"), reply: say(okay + lines(64<<10)), refused: true},
		"longest header":            {target: web("http"), reply: say(okay + lines(8<<10-50))},
		"longest header and body":   {target: web("http"), reply: say(okay + lines(8<<10-50) + "\r\n" + strings.Repeat("x", 10<<10-1))},
		"nine redirects":            {target: web("http"), reply: redirects(lines(8<<10 - 100))},
		"nine long redirects":       {target: web("http"), reply: redirects("")},
		"header with HTTP/2":        {target: web("http2"), reply: speak(settings, headers(1<<10))},
		"body with HTTP/2":          {target: web("http2"), reply: speak(settings, headers(1<<10), frame(0, 0, 1, make([]byte, 10<<10-1)))},
		"gRPC, no answer":           {target: health(false), reply: say("")},
		"gRPC header":               {target: health(false), reply: speak(settings, headers(1<<10))},
		"gRPC, 60,000 small frames": {target: health(false), reply: speak(settings, bytes.Repeat(frame(0, 0, 1, []byte{0}), 60_000)), refused: true},
		"gRPC, small frames":        {target: health(false), reply: speak(settings, bytes.Repeat(frame(0, 0, 1, []byte{0}), 1_600))},
		"gRPC, large frame":         {target: health(false), reply: speak(settings, frame(0, 0, 1, make([]byte, 15<<10)))},

		"certificate of 20 KiB":             {target: web("https"), reply: secure(t, 1, 20<<10, ""), refused: true},
		"certificate with 6,000 names":      {target: web("https"), reply: secure(t, 6_000, 0, ""), refused: true},
		"largest certificate and header":    {target: web("https"), reply: secure(t, 280, 13<<10, okay+lines(8<<10-50))},
		"gRPC, largest certificate":         {target: health(true), reply: secure(t, 280, 13<<10, string(settings))},
		"names of authorities in handshake": {target: web("https"), reply: authorities(t)},
	}
}

func web(scheme string) func(*testing.T, string) probing.Target {
	return func(t *testing.T, address string) probing.Target {
		t.Helper()
		parsed, err := url.Parse(strings.TrimSuffix(scheme, "2") + "://" + address + "/")
		expect.NoError(t, err)
		return probing.Target{Handler: probing.HandlerHTTP, HTTP: &probing.HTTP{URL: parsed, HTTP2: scheme == "http2"}}
	}
}

func health(tls bool) func(*testing.T, string) probing.Target {
	return func(_ *testing.T, address string) probing.Target {
		return probing.Target{Handler: probing.HandlerGRPC, GRPC: &probing.GRPC{Address: address, TLS: tls}}
	}
}

// say answers the first bytes of a client.
func say(reply string) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			return false
		}
		_, err := io.WriteString(conn, reply)
		return err == nil
	}
}

// redirects answers with nine redirects, with addresses as long as possible, and with the header.
// The answer to the tenth request is incomplete.
func redirects(header string) func(net.Conn) bool {
	pad := ""
	if header == "" {
		pad = strings.Repeat("%41", 1900/3)
	}
	return func(conn net.Conn) bool {
		request := make([]byte, 0, 16<<10)
		for !bytes.Contains(request, []byte("\r\n\r\n")) {
			n, err := conn.Read(request[len(request):cap(request)])
			if err != nil {
				return false
			}
			request = request[:len(request)+n]
		}
		if hop := request[len("GET /")] - '0'; hop < 9 { // The first path is "/ ".
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /%d%s\r\n%s\r\n", hop+1, pad, header)
			return false
		} else if hop > 9 {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /1%s\r\n%s\r\n", pad, header)
			return false
		}
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+lines(8<<10-50))
		return err == nil
	}
}

// lines returns header lines with different names, as short as possible.
func lines(size int) string {
	var out strings.Builder
	for i := int64(0); out.Len() < size-8; i++ {
		out.WriteString(strconv.FormatInt(i, 36) + ":\r\n")
	}
	return out.String()
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	size := len(payload)
	head := []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, 0, 0, 0, byte(stream)}
	return append(head, payload...)
}

// headers returns the frame of a header with different names, as short as possible. HTTP/2 counts
// 32 bytes more for each.
func headers(size int) []byte {
	block := []byte("\x88\x00\x0ccontent-type\x10application/grpc")
	for i := int64(0); len(block) < size; i++ {
		name := strconv.FormatInt(i, 36)
		block = append(block, 0, byte(len(name)))
		block = append(block, name...)
		block = append(block, 0)
	}
	const endHeaders = 4
	return frame(1, endHeaders, 1, block)
}

// speak sends the frames when the client has sent its request.
func speak(settings []byte, frames ...[]byte) func(net.Conn) bool {
	const preface, head = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 9
	return func(conn net.Conn) bool {
		if _, err := conn.Write(settings); err != nil {
			return false
		}
		if _, err := io.ReadFull(conn, make([]byte, preface)); err != nil {
			return false
		}
		for kind := byte(0); kind != 1; { // The header of the request.
			next := make([]byte, head)
			if _, err := io.ReadFull(conn, next); err != nil {
				return false
			}
			kind = next[3]
			size := int64(next[0])<<16 | int64(next[1])<<8 | int64(next[2])
			if _, err := io.CopyN(io.Discard, conn, size); err != nil {
				return false
			}
		}
		_, err := conn.Write(bytes.Join(frames, nil))
		return err == nil
	}
}

// secure opens TLS and replies. Its second certificate has that many names, is padded, and differs
// for each connection: clients share equal ones.
func secure(t *testing.T, names, padding int, reply string) func(net.Conn) bool {
	t.Helper()
	config, key := configuration(t)
	if !strings.HasPrefix(reply, "HTTP/1") {
		config.NextProtos = []string{"h2"}
	}
	name := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6}
	list, err := asn1.Marshal(slicesOf(name, names))
	expect.NoError(t, err)
	junk := certificate(t, key, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: list},
		pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 9}, Value: make([]byte, padding)})
	return func(conn net.Conn) bool {
		own := config.Clone()
		different := bytes.Clone(junk)
		_, _ = rand.Read(different[len(different)-16:]) // A part of the signature, which nobody verifies.
		own.Certificates = []tls.Certificate{{Certificate: [][]byte{config.Certificates[0].Certificate[0], different}, PrivateKey: key}}
		server := tls.Server(conn, own)
		if server.Handshake() != nil {
			return false
		}
		return say(reply)(server)
	}
}

// authorities sends the names of many authorities, and stalls within the handshake.
func authorities(t *testing.T) func(net.Conn) bool {
	t.Helper()
	config, _ := configuration(t)
	config.ClientAuth, config.ClientCAs = tls.RequestClientCert, x509.NewCertPool()
	for i := range 2_500 {
		config.ClientCAs.AddCert(&x509.Certificate{Raw: big.NewInt(int64(i)).Bytes(), RawSubject: []byte{0x30, 0}})
	}
	return func(conn net.Conn) bool {
		_ = tls.Server(&cut{Conn: conn}, config).Handshake() // It fails, because the client waits for the rest.
		return true
	}
}

// cut does not send the last bytes, and ends then.
type cut struct {
	net.Conn
	sent bool
}

func (c *cut) Read(p []byte) (int, error) {
	if c.sent {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

func (c *cut) Write(p []byte) (int, error) {
	c.sent = true
	if _, err := c.Conn.Write(p[:max(len(p)-10, 0)]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func slicesOf(value asn1.RawValue, n int) []asn1.RawValue {
	out := make([]asn1.RawValue, n)
	for i := range out {
		out[i] = value
	}
	return out
}

// configuration returns that of a server, with a certificate.
func configuration(t *testing.T) (*tls.Config, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	own := tls.Certificate{Certificate: [][]byte{certificate(t, key)}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}, key
}

func certificate(t *testing.T, key *ecdsa.PrivateKey, extensions ...pkix.Extension) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), ExtraExtensions: extensions}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.NoError(t, err)
	return der
}
