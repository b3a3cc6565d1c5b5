// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seamark-dev/seamark/internal/program/admission"
	"github.com/seamark-dev/seamark/internal/program/serving"
	"github.com/seamark-dev/seamark/test/expect"
)

// answersIn is a deadline for answers, which take much less.
const answersIn = 20 * time.Second

// issue returns a certificate that is its own authority.
func issue(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	expect.NoError(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// client returns a client with HTTP/2, as that of API servers, and with the certificate if it is not nil.
func client(t *testing.T, certificate *tls.Certificate) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: answersIn}
}

// limited serves a handler that answers with the length of the body, with the limits, until the test ends.
func limited(t *testing.T, limits admission.Limits) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, len(text))
	})
	certificate := issue(t)
	config := &tls.Config{NextProtos: []string{"h2"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- serving.Serve(ctx, listener, admission.Limit(handler, limits), serving.Options{TLS: config, Bodies: true})
	}()
	t.Cleanup(func() {
		stop()
		expect.NoError(t, <-done)
	})
	return "https://" + listener.Addr().String() + "/"
}

// post sends a body and returns the status and the answer.
func post(c *http.Client, url string, body io.Reader) (int, string, error) {
	response, err := c.Post(url, "application/json", body)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// endless is a body that begins, and ends when it is closed.
type endless struct {
	begin  *strings.Reader
	closed chan struct{}
	once   sync.Once
}

func newEndless(t *testing.T, begin string) *endless {
	e := &endless{begin: strings.NewReader(begin), closed: make(chan struct{})}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (e *endless) Read(p []byte) (int, error) {
	if n, err := e.begin.Read(p); err == nil {
		return n, nil
	}
	<-e.closed
	return 0, io.EOF
}

func (e *endless) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// TestSlowBodies checks that bodies that do not end keep out nobody, not even from the same address and connection.
func TestSlowBodies(t *testing.T) {
	const hostile = 40
	for name, test := range map[string]struct {
		limits admission.Limits
		begin  string
		// refused is how many of them are refused until all have arrived.
		refused int
	}{
		"number per source": {admission.Limits{PerSource: 8, ReadTimeout: time.Hour}, "{", hostile - 8},
		"number":            {admission.Limits{Unfinished: 8, ReadTimeout: time.Hour}, "{", hostile - 8},
		"bytes":             {admission.Limits{Bodies: 1 << 20, ReadTimeout: time.Hour}, strings.Repeat("a", 20<<10), hostile - 32},
		"time":              {admission.Limits{Bodies: 8 << 20, ReadTimeout: 10 * time.Millisecond}, "{", hostile},
	} {
		t.Run(name, func(t *testing.T) {
			url, clients := limited(t, test.limits), client(t, nil)
			refused := make(chan struct{}, hostile)
			for range hostile {
				body := newEndless(t, test.begin)
				go func() {
					// It may fail, because the server does not read the rest.
					_, _, _ = post(clients, url, body)
					refused <- struct{}{}
				}()
			}
			for range test.refused {
				<-refused
			}
			for range 20 {
				status, answer, err := post(clients, url, strings.NewReader("0123456789"))
				if err != nil || status != http.StatusOK || answer != "10" {
					t.Fatalf("answer %d %s, error %v", status, answer, err)
				}
			}
		})
	}
}

// TestUnreadAnswers checks that large answers that nobody reads hold no room that others need.
func TestUnreadAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- serving.Serve(ctx, listener, admission.Limit(echo, admission.Limits{ReadTimeout: time.Hour}), serving.Options{Bodies: true})
	}()
	body := bytes.Repeat([]byte("a"), 4<<20)
	for range 16 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		expect.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		// The server may refuse it.
		_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	t.Cleanup(func() {
		stop()
		expect.NoError(t, <-done)
	})
	others := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 20 {
		status, answer, err := post(others, "http://"+listener.Addr().String(), bytes.NewReader(body[:1<<20]))
		if err != nil || status != http.StatusOK || len(answer) != 1<<20 {
			t.Fatalf("answer %d with %d bytes, error %v", status, len(answer), err)
		}
	}
}

// TestManyRequests checks that a thousand requests at once from one API server pass.
func TestManyRequests(t *testing.T) {
	url := limited(t, admission.Limits{})
	server := client(t, nil)
	if _, _, err := post(server, url, strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	pod := bytes.Repeat([]byte("a"), 10<<10)
	var requests errgroup.Group
	for range 1000 {
		requests.Go(func() error {
			status, answer, err := post(server, url, bytes.NewReader(pod))
			if err == nil && (status != http.StatusOK || answer != fmt.Sprint(len(pod))) {
				err = fmt.Errorf("answer %d %s", status, answer)
			}
			return err
		})
	}
	if err := requests.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSizes checks what is too large, before and after it is decoded.
func TestSizes(t *testing.T) {
	url := limited(t, admission.Limits{Body: 1 << 20, Bodies: 2 << 20})
	for name, test := range map[string]struct {
		body string
		want int
	}{
		"pod":                      {strings.Repeat(`{"name":"a","value":"b"},`, 10_000), http.StatusOK},
		"largest body":             {strings.Repeat("a", 1<<20), http.StatusOK},
		"larger body":              {strings.Repeat("a", 1<<20+1), http.StatusRequestEntityTooLarge},
		"hundred thousand objects": {strings.Repeat("{},", 100_000), http.StatusRequestEntityTooLarge},
		"objects in an annotation": {`{"annotation":"` + strings.Repeat("{},", 100_000) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			// Without a length, the server learns it from the bytes.
			for _, body := range []io.Reader{strings.NewReader(test.body), io.MultiReader(strings.NewReader(test.body))} {
				if status, answer, err := post(client(t, nil), url, body); err != nil || status != test.want {
					t.Errorf("answer %d %s, error %v, want %d", status, answer, err, test.want)
				}
			}
		})
	}
}

// TestServer checks the server with certificates, before and after it starts.
func TestServer(t *testing.T) {
	certificate, known, unknown := issue(t), issue(t), issue(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(c *tls.Certificate) {
		expect.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600))
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	at, _ := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	options := admission.Options{
		Host: "127.0.0.1", Port: at.Port, ClientCA: file,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
	}
	if _, err := admission.New(options); err == nil {
		t.Error("a file of authorities that does not exist is accepted")
	}
	write(known)
	server, err := admission.New(options)
	expect.NoError(t, err)
	ready := server.StartedChecker()
	if ready(nil) == nil {
		t.Error("it is ready before it starts")
	}
	server.Register("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	for ready(nil) != nil {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	url := "https://" + at.String() + "/"
	asks := func(name string, c *tls.Certificate, want bool) {
		t.Helper()
		status, answer, err := post(client(t, c), url, strings.NewReader("{}"))
		if (err == nil && status == http.StatusOK) != want {
			t.Errorf("%s: answer %d %s, error %v", name, status, answer, err)
		}
	}
	asks("no certificate", nil, false)
	asks("certificate", known, true)
	asks("certificate of others", unknown, false)
	write(unknown)
	asks("certificate of a new authority", unknown, true)
	stop()
	expect.NoError(t, <-done)
}
