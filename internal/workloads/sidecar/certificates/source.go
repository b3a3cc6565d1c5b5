// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Name is the name of the program, its Service and its Secret.
	Name = "seamark-injector"
	// BundleName is the name of its ConfigMap.
	BundleName = "seamark-injector-ca"
	// BundleKey is the key of the ConfigMap with the authorities to trust.
	BundleKey = "ca.crt"
	// addedKey is the annotation of the ConfigMap with the time when an authority was added next to others.
	addedKey = "seamark.dev/authority-added-at"
	// retryPeriod is how often the Secret is read until there is a certificate.
	retryPeriod = time.Second
	// requestTimeout limits each request: the connection may hang.
	requestTimeout = 10 * time.Second
)

// Options configure a Source. All are required, except Directory.
type Options struct {
	// Client reads and writes the Secret and the ConfigMap.
	Client client.Client
	// Secret has the authorities, and Bundle is the ConfigMap that publishes them.
	Secret, Bundle types.NamespacedName
	// ServerName is the name in the server's certificate.
	ServerName string
	// Directory has tls.crt, tls.key and ca.crt, which cert-manager writes. The Secret is not used then.
	Directory string
	// Lifetimes are those of the certificates.
	Lifetimes Lifetimes
	// Log receives problems.
	Log logr.Logger
	// Now is the clock.
	Now func() time.Time
}

// Source has the current certificate of a server. It implements manager.Runnable.
type Source struct {
	options Options
	current atomic.Pointer[tls.Certificate]
	// authorities are those of the files that were read last, and serveAt is when the certificate is served.
	authorities string
	serveAt     time.Time
}

// New returns a Source without a certificate.
func New(options Options) *Source { return &Source{options: options} }

// errNone means that there is no certificate yet.
var errNone = errors.New("there is no certificate yet")

// GetCertificate returns the current certificate. It is for tls.Config.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := s.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNone
}

// Ready reports whether there is a certificate.
func (s *Source) Ready() bool { return s.current.Load() != nil }

// NeedLeaderElection returns false: each injector serves.
func (s *Source) NeedLeaderElection() bool { return false }

// Start renews the certificate until the context ends.
func (s *Source) Start(ctx context.Context) error {
	delay := retryPeriod
	for {
		err := s.look(ctx)
		if err == nil {
			delay = s.options.Lifetimes.Look
		} else if ctx.Err() == nil {
			s.options.Log.Error(err, "Failed to renew certificates, retrying")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.Jitter(delay, 0.2)):
		}
	}
}

// look renews what is due.
func (s *Source) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if s.options.Directory != "" {
		return s.load(ctx)
	}
	secret, now := &corev1.Secret{}, s.options.Now()
	if err := s.options.Client.Get(ctx, s.options.Secret, secret); err != nil {
		return fmt.Errorf("get secret %s: %w", s.options.Secret, err)
	}
	data, changed, err := renew(secret.Data, s.options.Lifetimes, now)
	if err != nil {
		return err
	}
	if changed {
		secret.Data = data
		// Another injector may have changed it. The next look reads what it wrote.
		if err := s.options.Client.Update(ctx, secret); err != nil {
			return fmt.Errorf("update secret %s: %w", s.options.Secret, err)
		}
	}
	// What signs is published first.
	if _, err := s.publish(ctx, bundle(data, now)); err != nil {
		return err
	}
	if isSignedBy(s.current.Load(), data, now) {
		return nil
	}
	certificate, err := serve(data, s.options.ServerName, s.options.Lifetimes, now)
	if err != nil {
		return err
	}
	s.current.Store(certificate)
	return nil
}

// publish adds the authorities to those of the ConfigMap, and returns when an injector last added one next to others, or
// zero.
func (s *Source) publish(ctx context.Context, authorities []byte) (time.Time, error) {
	published, now := &corev1.ConfigMap{}, s.options.Now()
	if err := s.options.Client.Get(ctx, s.options.Bundle, published); err != nil {
		return time.Time{}, fmt.Errorf("get configmap %s: %w", s.options.Bundle, err)
	}
	bundle, added := union([]byte(published.Data[BundleKey]), authorities, now)
	if added {
		metav1.SetMetaDataAnnotation(&published.ObjectMeta, addedKey, now.UTC().Format(time.RFC3339Nano))
	}
	if published.Data[BundleKey] != string(bundle) {
		published.Data = map[string]string{BundleKey: string(bundle)}
		if err := s.options.Client.Update(ctx, published); err != nil {
			return time.Time{}, fmt.Errorf("update configmap %s: %w", s.options.Bundle, err)
		}
	}
	// An annotation that somebody changed is like none.
	at, _ := time.Parse(time.RFC3339Nano, published.Annotations[addedKey])
	return at, nil
}

// load reads the files of cert-manager, which changes them when it renews the certificate. Nodes get them at different
// times.
func (s *Source) load(ctx context.Context) error {
	file := func(name string) string { return filepath.Join(s.options.Directory, name) }
	authorities, err := os.ReadFile(file(BundleKey))
	if err != nil {
		return fmt.Errorf("read the certificate authority: %w", err)
	}
	certificate, err := tls.LoadX509KeyPair(file(corev1.TLSCertKey), file(corev1.TLSPrivateKeyKey))
	if err != nil {
		return fmt.Errorf("read the server certificate: %w", err)
	}
	now := s.options.Now()
	if err := verify(&certificate, authorities, now); err != nil {
		return err
	}
	addedAt, err := s.publish(ctx, authorities)
	if err != nil {
		return err
	}
	if s.authorities != string(authorities) {
		s.authorities, s.serveAt = string(authorities), now.Add(s.overlap(addedAt, now))
	}
	if !now.Before(s.serveAt) {
		s.current.Store(&certificate)
	}
	return nil
}

// overlap returns how long authorities that are published now must be known before they are used. The last certificate
// is served until then. A program that starts has none, and leaves the requests to others until API servers know the last
// authority, whichever injector has added it.
func (s *Source) overlap(addedAt, now time.Time) time.Duration {
	if current := s.current.Load(); current != nil {
		return min(s.options.Lifetimes.Overlap, current.Leaf.NotAfter.Sub(now)/2)
	}
	// The clocks of injectors differ.
	return min(s.options.Lifetimes.Look, max(0, addedAt.Add(s.options.Lifetimes.Look).Sub(now)))
}
