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

// The times of certificates. The authority is renewed after two thirds of its time, each
// server's certificate too.
const (
	authorityDuration   = 365 * 24 * time.Hour
	certificateDuration = 7 * 24 * time.Hour
)

// certificateSource makes the server's certificates: a certificate authority in a Secret
// that all managers share, and from it a certificate in the memory of each. A Secret that
// is empty, broken or due is filled anew, and every manager changes over at once. While it
// is missing, each goes on with the authority that it knows.
type certificateSource struct {
	*certificates.DynamicSource
	log logr.Logger
}

func newCertificateSource(config *rest.Config, options Options) *certificateSource {
	return &certificateSource{
		log: options.Logger.WithName("webhook-certificates"),
		DynamicSource: &certificates.DynamicSource{
			// The names under which the API server calls a Service.
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

// Start keeps the certificates until the context ends.
func (s *certificateSource) Start(ctx context.Context) error {
	// The library logs at its default level what Seamark logs for who looks into it.
	if err := s.DynamicSource.Start(logr.NewContext(ctx, s.log.V(1))); err != nil {
		return fmt.Errorf("keeping the webhook's certificates: %w", err)
	}
	return nil
}

// serve has the server use the newest certificate.
func (s *certificateSource) serve(config *tls.Config) {
	config.GetCertificate = s.GetCertificate
}
