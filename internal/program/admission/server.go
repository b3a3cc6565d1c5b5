// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission serves the webhooks that API servers call. Others can reach its port, too, so it bounds
// what a request takes before it is complete, and may ask for the certificate of the API server.
package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/seamark-dev/seamark/internal/program/serving"
)

const (
	// drain is how long requests may take after the context has ended.
	drain = 2 * time.Second
	// maxConnections is the maximum number of open connections. With 600 new ones per second, one without a complete request
	// is closed after about 430 ms.
	maxConnections = 256
)

// Options configure a Server.
type Options struct {
	// Host and Port are where it serves. An empty host means all addresses.
	Host string
	Port int
	// GetCertificate returns the certificate. If it is nil, Directory has tls.crt and tls.key.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Directory      string
	// ClientCA is a file with the authorities of the certificates of API servers. If it is not empty, others are
	// refused.
	ClientCA string
}

// Server serves webhooks, and implements controller-runtime's webhook.Server.
type Server struct {
	// Server registers the webhooks.
	webhook.Server

	options Options
	config  atomic.Pointer[tls.Config]
}

// New returns a Server. It returns an error if the file of the authorities cannot be used.
func New(options Options) (*Server, error) {
	s := &Server{Server: webhook.NewServer(webhook.Options{Host: options.Host, Port: options.Port}), options: options}
	if options.ClientCA == "" {
		return s, nil
	}
	_, err := authorities(options.ClientCA)
	return s, err
}

// Start serves until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.options.GetCertificate, NextProtos: []string{"h2", "http/1.1"}}
	running, ctx := errgroup.WithContext(ctx)
	if config.GetCertificate == nil {
		watcher, err := certwatcher.New(filepath.Join(s.options.Directory, "tls.crt"), filepath.Join(s.options.Directory, "tls.key"))
		if err != nil {
			return fmt.Errorf("read the certificate of the webhook: %w", err)
		}
		config.GetCertificate = watcher.GetCertificate
		running.Go(func() error { return watcher.Start(ctx) })
	}
	if s.options.ClientCA != "" {
		requireClients(config, s.options.ClientCA)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port)))
	if err != nil {
		return fmt.Errorf("listen for API servers: %w", err)
	}
	s.config.Store(config)
	running.Go(func() error {
		options := serving.Options{TLS: config, Bodies: true, Drain: drain, Connections: maxConnections}
		return serving.Serve(ctx, listener, Limit(s.WebhookMux(), Limits{}), options)
	})
	return running.Wait() //nolint:wrapcheck // it says what failed
}

// requireClients makes the server ask for certificates of the authorities. The file is read for each connection,
// because authorities change, and API servers keep their connections.
func requireClients(config *tls.Config, file string) {
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := authorities(file)
		if err != nil {
			return nil, err
		}
		own := config.Clone()
		own.GetConfigForClient, own.ClientCAs = nil, pool
		return own, nil
	}
}

// authorities returns the certificates in the file.
func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of API servers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the authorities of API servers: %s contains no certificate in PEM format", file)
	}
	return pool, nil
}

// StartedChecker returns a check that succeeds while it serves and has a certificate.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		config := s.config.Load()
		if config == nil {
			return errors.New("not started")
		}
		_, err := config.GetCertificate(&tls.ClientHelloInfo{})
		return err
	}
}
