// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	certificates "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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

// authorityKey is the key of the CA certificate in the Secret.
const authorityKey = "ca.crt"

// bundles makes the API server trust the webhook's certificate: it copies the CA certificate
// from the Secret to the webhook configuration. Requests do not distinguish the two.
type bundles struct {
	reader client.Reader
	writer client.Client
	// secret and configuration are the names of the two objects.
	secret, configuration types.NamespacedName
}

// Reconcile writes the CA certificate to the configuration if it differs.
func (b *bundles) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret, configuration := &corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := b.reader.Get(ctx, b.secret, secret)
	if err == nil {
		err = b.reader.Get(ctx, b.configuration, configuration)
	}
	switch {
	case apierrors.IsNotFound(err):
		// The missing object triggers a request when it is created.
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get CA Secret and webhook configuration: %w", err)
	}
	body, err := trusting(configuration, secret.Data[authorityKey])
	if err != nil || body == nil {
		return reconcile.Result{}, err
	}
	patch := client.RawPatch(types.StrategicMergePatchType, body)
	err = b.writer.Patch(ctx, configuration.DeepCopy(), patch, client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write CA bundle to webhook configuration %s: %w", configuration.Name, err)
	}
	log.FromContext(ctx).Info("Wrote CA bundle of webhook")
	return reconcile.Result{}, nil
}

// trusting returns the patch that makes every webhook of the configuration trust the CA, or
// nil if all do or there is no CA.
func trusting(configuration *admissionregistrationv1.MutatingWebhookConfiguration, authority []byte) ([]byte, error) {
	var webhooks []map[string]any
	for i := range configuration.Webhooks {
		if webhook := &configuration.Webhooks[i]; !bytes.Equal(webhook.ClientConfig.CABundle, authority) {
			webhooks = append(webhooks, map[string]any{
				"name": webhook.Name, "clientConfig": map[string]any{"caBundle": authority},
			})
		}
	}
	if len(authority) == 0 || len(webhooks) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{
		// A recreated configuration must not be patched; it triggers a new request.
		"metadata": map[string]any{"uid": configuration.UID},
		"webhooks": webhooks,
	})
	if err != nil {
		return nil, fmt.Errorf("encode CA bundle: %w", err)
	}
	return body, nil
}
