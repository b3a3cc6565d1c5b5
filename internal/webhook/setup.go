// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
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
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Path is where the server answers.
const Path = "/annotate-pod"

// Options are what a webhook is made with.
type Options struct {
	// Port is what the server listens on, at all addresses.
	Port int
	// CertificateDirectory has tls.crt and tls.key, which somebody else makes and renews,
	// and tells the API server of. Empty means that Seamark does.
	CertificateDirectory string
	// Namespace is that of the Service and of the Secret.
	Namespace string
	// Service is the name of the Service by which the API server calls.
	Service string
	// Secret is the name of the Secret that holds the certificate authority which Seamark
	// makes, and Configuration that of the MutatingWebhookConfiguration which is told of it.
	Secret, Configuration string
	// Logger takes what the webhook logs.
	Logger logr.Logger
}

// Webhook is the server and what it needs.
type Webhook struct {
	// Server is to be the manager's webhook server.
	Server webhook.Server

	options Options
	// source is nil where somebody else makes the certificates.
	source *certificateSource
}

// New returns a webhook that does not serve yet.
func New(config *rest.Config, options Options) *Webhook {
	w := &Webhook{options: options}
	server := webhook.Options{Port: options.Port, CertDir: options.CertificateDirectory}
	if options.CertificateDirectory == "" {
		w.source = newCertificateSource(config, options)
		server.TLSOpts = []func(*tls.Config){w.source.serve}
	}
	w.Server = webhook.NewServer(server)
	return w
}

// Add runs the webhook under the manager whose webhook server it is, in every manager,
// whether or not it leads. The manager is ready once the webhook serves.
func (w *Webhook) Add(ctx context.Context, mgr manager.Manager, compiler *plan.Compiler, defaults plan.Defaults) error {
	informers, err := w.informers(mgr)
	if err != nil {
		return err
	}
	// All informers must be there before the first request asks for one.
	for _, object := range w.kinds() {
		if _, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("making the informer of %T for the webhook: %w", object, err)
		}
	}
	// The manager runs its server once it is asked for it.
	mgr.GetWebhookServer().Register(Path, &admission.Webhook{Handler: &Handler{
		Markers: mgr.GetCache(), Nodes: informers, Compiler: compiler, Defaults: defaults,
	}})
	err = errors.Join(mgr.Add(informers), mgr.AddReadyzCheck("webhook", w.Server.StartedChecker()))
	if err != nil {
		return fmt.Errorf("adding the webhook: %w", err)
	}
	if w.source == nil {
		return nil
	}
	if err := mgr.Add(w.source); err != nil {
		return fmt.Errorf("adding the webhook's certificates: %w", err)
	}
	return w.addBundles(mgr, informers)
}

// addBundles runs in the manager that leads.
func (w *Webhook) addBundles(mgr manager.Manager, informers cache.Cache) error {
	b := &bundles{
		reader: informers, writer: mgr.GetClient(),
		secret:        types.NamespacedName{Namespace: w.options.Namespace, Name: w.options.Secret},
		configuration: types.NamespacedName{Name: w.options.Configuration},
	}
	return controller.Add(mgr, "webhookbundle", "configuration", b, 1,
		source.Kind(informers, &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{}),
		source.Kind(informers, &admissionregistrationv1.MutatingWebhookConfiguration{},
			&handler.TypedEnqueueRequestForObject[*admissionregistrationv1.MutatingWebhookConfiguration]{}))
}

// caches are informers that a manager starts before all that reads from them.
type caches struct{ cache.Cache }

// GetCache marks them as such.
func (c *caches) GetCache() cache.Cache { return c }

func (w *Webhook) kinds() []client.Object {
	if w.source == nil {
		return []client.Object{&corev1.Node{}}
	}
	return []client.Object{&corev1.Node{}, &corev1.Secret{}, &admissionregistrationv1.MutatingWebhookConfiguration{}}
}

// informers keeps the nodes that no kubelet runs, and of all other objects the two that
// the webhook's rights are for.
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
				Transform: trimNode,
			},
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{w.options.Namespace: {FieldSelector: named(w.options.Secret)}},
			},
			&admissionregistrationv1.MutatingWebhookConfiguration{}: {Field: named(w.options.Configuration)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the informers of the webhook: %w", err)
	}
	return &caches{Cache: built}, nil
}

// trimNode keeps what a pod's place is chosen by.
func trimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints},
	}, nil
}
