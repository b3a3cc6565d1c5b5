// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/admission"
	"github.com/seamark-dev/seamark/internal/program/health"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
)

// Drain is how long an injector that ends answers requests: API servers keep connections to it, and
// endpoints change after it has been told to end.
const Drain = 15 * time.Second

// Options configure the program.
type Options struct {
	// Config connects to the API server.
	Config *rest.Config
	// Namespace is the program's own namespace, which has the revisions, the Secret, the ConfigMap and the
	// Service.
	Namespace string
	// Host and Port are where it serves. An empty host means all addresses.
	Host string
	Port int
	// ClientCA is a file with the authorities of the certificates of API servers. If it is empty, none are checked.
	ClientCA string
	// URL is where API servers reach the injectors. Empty means their Service.
	URL string
	// CertificateDirectory has the certificate of cert-manager. If it is empty, the injectors issue
	// certificates.
	CertificateDirectory string
	// Lifetimes are those of the certificates that the injectors issue.
	Lifetimes certificates.Lifetimes
	// Drain is how long it serves after the context has ended.
	Drain time.Duration
	// MetricsBindAddress, HealthProbeBindAddress and PprofBindAddress are host:port, or 0.
	MetricsBindAddress, HealthProbeBindAddress, PprofBindAddress string
	// Registry receives the metrics.
	Registry prometheus.Registerer
	// Logger receives the log.
	Logger logr.Logger
}

// Injector is the program.
type Injector struct {
	options Options
	program *startup.Program
	source  *certificates.Source
}

// NewProgram returns an Injector. It returns an error if the address of the health checks is not available.
func NewProgram(options Options) (*Injector, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	direct, err := client.New(options.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client for certificates: %w", err)
	}
	named := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: options.Namespace, Name: name}
	}
	source := certificates.New(certificates.Options{
		Client: direct, Secret: named(certificates.Name), Bundle: named(certificates.BundleName),
		ServerName: serverName(options), Directory: options.CertificateDirectory,
		Lifetimes: options.Lifetimes, Log: options.Logger, Now: time.Now,
	})
	addresses := startup.Addresses{
		Health: options.HealthProbeBindAddress, Metrics: options.MetricsBindAddress, Profiles: options.PprofBindAddress,
	}
	program, err := startup.New(options.Config, options.Logger, addresses,
		[]schema.GroupVersionKind{v1alpha1.GroupVersion().WithKind("SidecarSet")}, health.Until("certificate", "not issued yet", source.Ready))
	return &Injector{options: options, program: program, source: source}, err
}

// serverName returns the name in the certificates.
func serverName(options Options) string {
	// The configuration has been validated.
	if at, err := url.Parse(options.URL); err == nil && at.Hostname() != "" {
		return at.Hostname()
	}
	return certificates.Name + "." + options.Namespace + ".svc"
}

// Run serves until the drain after the end of the context. It waits until the API server serves SidecarSets.
func (i *Injector) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		i.options.Logger.Info("Ending after a last period of service", "period", i.options.Drain.String())
		time.AfterFunc(i.options.Drain, stop)
	})()
	return i.program.Run(serving, i.assemble)
}

// assemble adds the server to a manager.
func (i *Injector) assemble(ctx context.Context) (ctrlmanager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	server, err := admission.New(admission.Options{
		Host: i.options.Host, Port: i.options.Port, GetCertificate: i.source.GetCertificate, ClientCA: i.options.ClientCA,
	})
	if err != nil {
		return nil, err
	}
	accepted := new(acceptances)
	mgr, err := i.program.Manager(ctrlmanager.Options{
		Scheme: scheme, WebhookServer: server, Cache: i.caches(accepted),
	})
	if err != nil {
		return nil, err
	}
	sets, err := startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.SidecarSet{}, indexers())
	if err != nil {
		return nil, err
	}
	if _, err := sets.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: accepted.forget}); err != nil {
		return nil, fmt.Errorf("watch SidecarSets: %w", err)
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &appsv1.ControllerRevision{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("create the informer of ControllerRevisions: %w", err)
	}
	requests := NewMetrics(i.options.Registry)
	mgr.GetWebhookServer().Register("/inject/", New(newAccepted(sets, mgr.GetCache(), mgr.GetAPIReader(), i.options.Namespace), requests.Done))
	if err := mgr.Add(i.source); err != nil {
		return nil, fmt.Errorf("add the certificates: %w", err)
	}
	return mgr, nil
}

// caches returns the options of the cache.
func (i *Injector) caches(accepted *acceptances) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.SidecarSet{}:       {Transform: accepted.trim},
			&appsv1.ControllerRevision{}: {Namespaces: map[string]cache.Config{i.options.Namespace: {}}},
		},
	}
}

// newScheme returns the types that the program reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, (&runtime.SchemeBuilder{corev1.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme}).AddToScheme(scheme)
}
