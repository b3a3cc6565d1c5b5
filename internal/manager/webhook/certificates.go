// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	certificates "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// Lifetimes of the certificates. The CA and the server certificates are renewed after two
// thirds of their lifetime.
const (
	authorityDuration   = 365 * 24 * time.Hour
	certificateDuration = 7 * 24 * time.Hour
)

// certificateSource issues the server's certificates. All managers share a CA in a Secret, and
// each issues a certificate for itself that it keeps in memory. If the Secret is empty,
// invalid or due for renewal, it gets a new CA, and every manager switches at once. While the
// Secret is missing, the managers keep using the last CA.
type certificateSource struct {
	*certificates.DynamicSource
	log logr.Logger
}

func newCertificateSource(config *rest.Config, options Options) *certificateSource {
	return &certificateSource{
		log: options.Logger.WithName("webhook-certificates"),
		DynamicSource: &certificates.DynamicSource{
			// The name that the API server uses for a Service.
			DNSNames: []string{fmt.Sprintf("%s.%s.svc", options.Service, options.Namespace)},
			Authority: &authority.DynamicAuthority{
				RESTConfig:      config,
				SecretNamespace: options.Namespace,
				SecretName:      options.Secret,
				CommonName:      options.Service + "-ca",
				CADuration:      authorityDuration,
				LeafDuration:    certificateDuration,
			},
		},
	}
}

// Start issues and renews certificates until the context ends.
func (s *certificateSource) Start(ctx context.Context) error {
	// The library logs details at its default level.
	if err := s.DynamicSource.Start(logr.NewContext(ctx, s.log.V(1))); err != nil {
		return fmt.Errorf("issue webhook certificates: %w", err)
	}
	return nil
}

// serve makes the server use the latest certificate.
func (s *certificateSource) serve(config *tls.Config) {
	config.GetCertificate = s.GetCertificate
}
