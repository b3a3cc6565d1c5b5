// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	program "github.com/seamark-dev/seamark/internal/program/admission"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Path is the URL path of the webhook.
const Path = "/annotate-pod"

// Options configure a Webhook.
type Options struct {
	// Port is the port of the server, on all addresses.
	Port int
	// ClientCA is a file with the authorities of the certificates of API servers. If it is empty, none are checked.
	ClientCA string
	// CertificateDirectory has tls.crt and tls.key, which another program issues and renews
	// and registers with the API server. If it is empty, Seamark does so.
	CertificateDirectory string
	// Namespace is the namespace of the Service and of the Secret.
	Namespace string
	// Service is the name of the Service that the API server calls.
	Service string
	// Secret is the name of the Secret with the certificate authority that Seamark creates.
	// Configuration is the name of the MutatingWebhookConfiguration that must trust it.
	Secret, Configuration string
	// Logger is the logger of the webhook.
	Logger logr.Logger
}

// Webhook is the server and its certificates.
type Webhook struct {
	// Server must be used as the manager's webhook server.
	Server webhook.Server

	options Options
	// source is nil if another program issues the certificates.
	source *certificateSource
}

// New returns a webhook. It serves after Add, while the manager runs. It returns an error if ClientCA cannot be used.
func New(config *rest.Config, options Options) (*Webhook, error) {
	w := &Webhook{options: options}
	server := program.Options{Port: options.Port, Directory: options.CertificateDirectory, ClientCA: options.ClientCA}
	if options.CertificateDirectory == "" {
		w.source = newCertificateSource(config, options)
		server.GetCertificate = w.source.GetCertificate
	}
	var err error
	if w.Server, err = program.New(server); err != nil {
		return nil, err
	}
	return w, nil
}

// Add runs the webhook under the manager that uses its server, whether or not the manager
// leads. The manager must not be ready before the webhook serves.
func (w *Webhook) Add(ctx context.Context, mgr manager.Manager, reader gather.Reader) error {
	informers, err := w.informers(mgr)
	if err != nil {
		return err
	}
	// All informers must exist before the first request reads from one.
	kinds := []client.Object{&corev1.Node{}}
	if w.source != nil {
		kinds = append(kinds, &corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{})
	}
	for _, object := range kinds {
		if _, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("create informer of %T for webhook: %w", object, err)
		}
	}
	// GetWebhookServer makes the manager run the server.
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &Handler{Reader: reader, Nodes: informers}})
	if err := mgr.Add(informers); err != nil {
		return fmt.Errorf("add webhook: %w", err)
	}
	if w.source == nil {
		return nil
	}
	if err := mgr.Add(w.source); err != nil {
		return fmt.Errorf("add webhook certificates: %w", err)
	}
	return w.addBundles(mgr, informers)
}

// addBundles adds the controller of the CA bundle, which runs while the manager leads.
func (w *Webhook) addBundles(mgr manager.Manager, informers cache.Cache) error {
	b := &bundles{
		reader: informers, writer: mgr.GetClient(),
		secret:        types.NamespacedName{Namespace: w.options.Namespace, Name: w.options.Secret},
		configuration: types.NamespacedName{Name: w.options.Configuration},
	}
	return controllers.Add(mgr, "webhookbundle", "configuration", b, 1,
		source.Kind(informers, &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{}),
		source.Kind(informers, &admissionregistrationv1.MutatingWebhookConfiguration{},
			&handler.TypedEnqueueRequestForObject[*admissionregistrationv1.MutatingWebhookConfiguration]{}))
}

// caches makes the manager start the informers before the runnables that read from them.
type caches struct{ cache.Cache }

// GetCache identifies the informers as a cache to the manager.
func (c *caches) GetCache() cache.Cache { return c }

// informers returns informers of the virtual nodes, the Secret and the configuration. The
// webhook has no permission to read other objects.
func (w *Webhook) informers(mgr manager.Manager) (*caches, error) {
	shared := true
	named := func(name string) fields.Selector {
		return fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	built, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                   mgr.GetHTTPClient(),
		Scheme:                       mgr.GetScheme(),
		Mapper:                       mgr.GetRESTMapper(),
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: &shared,
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {
				Label:     labels.SelectorFromSet(labels.Set{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}),
				Transform: podview.Transform(podview.TrimVirtualNode),
			},
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{w.options.Namespace: {FieldSelector: named(w.options.Secret)}},
			},
			&admissionregistrationv1.MutatingWebhookConfiguration{}: {Field: named(w.options.Configuration)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create informers of webhook: %w", err)
	}
	return &caches{Cache: built}, nil
}
