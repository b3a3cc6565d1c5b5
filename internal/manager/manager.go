// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager assembles the manager: caches, controllers, webhook, leader election,
// health and metrics. These are all API permissions that it requires:
//
//	nodes                        get list watch
//	pods                         get list watch
//	pods/status                  patch
//	nodepodprobes                get list watch create patch delete
//	probereports                 get list watch delete deletecollection
//	podprobemarkers              get list watch patch
//	podprobemarkers/status       patch
//	events                       create patch
//	leases, in its namespace     get create update, for leader election
//
// With the web page, also these:
//
//	tokenreviews                 create
//	subjectaccessreviews         create
//
// With a webhook whose certificates it issues, also these, for one object each:
//
//	secrets, in its namespace     get list watch update
//	mutatingwebhookconfigurations get list watch patch
package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/marker"
	metrics "github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/nodeprobe"
	"github.com/seamark-dev/seamark/internal/manager/podmark"
	"github.com/seamark-dev/seamark/internal/manager/virtualpod"
	"github.com/seamark-dev/seamark/internal/manager/webhook"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/startup"
)

// Name is the manager's name in leases and events.
const Name = "seamark-manager"

// shutdown is the time that controllers have to finish their writes on shutdown.
const shutdown = 5 * time.Second

// Options configure a manager.
type Options struct {
	// Config connects to the API server. Its rate limits are ignored: the API server's
	// priority and fairness limits requests.
	Config *rest.Config
	// LeaderElection makes the controllers wait until this manager is the leader. Without
	// it, only one manager may run.
	LeaderElection bool
	// LeaderElectionNamespace is the namespace of the lease.
	LeaderElectionNamespace string
	// MetricsBindAddress and HealthProbeBindAddress are the addresses of the two servers,
	// host:port. "0" disables a server.
	MetricsBindAddress, HealthProbeBindAddress string
	// PprofBindAddress is the address that serves profiles, host:port. Empty or "0" disables
	// it. The host must be a loopback address, because profiles expose internals.
	PprofBindAddress string
	// UIBindAddress is the address that serves the web page, host:port. Empty or "0" disables it.
	// The host must be a loopback address, because the connection is not encrypted.
	UIBindAddress string
	// Disabled means that the feature gate PodProbeMarkerGate is off: no controller runs, and
	// plans and marks do not change.
	Disabled bool
	// Serverless enables support for pods on virtual nodes, if the manager is not Disabled:
	// the feature gate EnablePodProbeMarkerOnServerless.
	Serverless bool
	// Webhook annotates pods for virtual nodes when they are created. If it is nil or the
	// manager is not Serverless, only the controller annotates them.
	Webhook *webhook.Options
	// Controllers is the concurrency of each controller, at least 1.
	Controllers configv1alpha1.Controllers
	// Defaults are the values of probe fields that markers leave unset.
	Defaults plan.Defaults
	// Version of the program, for the metrics.
	Version string
	// Registry receives the manager's own metrics.
	Registry prometheus.Registerer
	// Logger receives the log of the manager and its controllers.
	Logger logr.Logger
}

// views returns the settings that views depend on.
func (o Options) views() view.Options {
	return view.Options{Defaults: o.Defaults, Serverless: o.Serverless}
}

// Manager runs the controllers.
type Manager struct {
	options Options
	config  *rest.Config
	hook    *webhook.Webhook
	crds    *startup.CRDs
	health  *startup.Health
	synced  atomic.Bool
}

// New returns a manager. It does not connect to the API server, and returns an error if the
// address of the health checks is not available.
func New(options Options) (*Manager, error) {
	cfg := rest.CopyConfig(options.Config)
	cfg.QPS = -1
	crds, err := startup.NewCRDs(cfg, options.Logger, resources()...)
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options, config: cfg, hook: newWebhook(cfg, options), crds: crds}
	checks := []startup.Check{startup.CachesCheck(&m.synced)}
	if !options.Disabled {
		checks = append([]startup.Check{{Name: "crds", Unready: crds.Unready}}, checks...)
	}
	if m.hook.Server != nil {
		checks = append(checks, startup.Check{Name: "webhook", Unready: m.hook.Server.StartedChecker()})
	}
	if m.health, err = startup.NewHealth(options.HealthProbeBindAddress, checks...); err != nil {
		return nil, err
	}
	return m, nil
}

// Run waits until the API server serves the CRDs and runs the controllers until the context ends.
// Meanwhile it serves the health checks. It returns an error if an address is not available or
// the lease is lost. The process must exit when Run returns.
func (m *Manager) Run(ctx context.Context) error {
	return m.health.Run(ctx, m.run)
}

func (m *Manager) run(ctx context.Context) error {
	// Without controllers, the manager does not need the CRDs.
	if !m.options.Disabled && !m.crds.Await(ctx) {
		return nil
	}
	mgr, err := m.assemble(ctx)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// assemble adds the controllers to a manager. It returns an error if an address is not available.
func (m *Manager) assemble(ctx context.Context) (ctrlmanager.Manager, error) {
	options := m.options
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	// Names repeat if one process runs several managers in turn, as tests do.
	skipNames, grace := true, shutdown
	mgr, err := ctrlmanager.New(m.config, ctrlmanager.Options{
		Scheme: scheme,
		Logger: options.Logger,
		// The mapper knows the kinds that the CRDs were waited for.
		MapperProvider:                func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return m.crds.Mapper, nil },
		Cache:                         caches(options.views(), options.uiEnabled()),
		Client:                        client.Options{Cache: &client.CacheOptions{}},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              Name,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsBindAddress},
		HealthProbeBindAddress:        "0",
		PprofBindAddress:              options.PprofBindAddress,
		GracefulShutdownTimeout:       &grace,
		Controller:                    config.Controller{SkipNameValidation: &skipNames, Logger: options.Logger},
		WebhookServer:                 m.hook.Server,
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	if err := mgr.Add(&startup.Readiness{Cache: mgr.GetCache(), Synced: &m.synced}); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	if options.Disabled {
		options.Logger.Info("Not starting controllers because feature gate PodProbeMarkerGate is off: plans and marks do not change")
		return mgr, nil
	}
	if err := startInformers(ctx, mgr.GetCache()); err != nil {
		return nil, err
	}
	compiler, err := newCompiler(ctx, mgr.GetCache())
	if err != nil {
		return nil, err
	}
	stores, err := newStores(ctx, mgr.GetCache())
	if err != nil {
		return nil, err
	}
	reader := gather.Reader{Client: mgr.GetCache(), Stores: stores, Compiler: compiler, Options: options.views()}
	shortages := controller.NewShortages()
	counters, err := addMetrics(ctx, mgr, reader, shortages, options)
	if err != nil {
		return nil, err
	}
	if options.uiEnabled() {
		if err := addPage(ctx, mgr, options); err != nil {
			return nil, err
		}
	}
	return mgr, addControllers(ctx, m.config, mgr, m.hook, reader, counters, shortages, options)
}

// resources returns the custom resources that the controllers need.
func resources() []startup.Resource {
	kruise, own := v1alpha1.GroupVersion(), seamarkv1alpha1.GroupVersion()
	return []startup.Resource{
		{Kind: kruise.WithKind("NodePodProbe"), Name: "nodepodprobes"},
		{Kind: kruise.WithKind("PodProbeMarker"), Name: "podprobemarkers"},
		{Kind: own.WithKind("ProbeReport"), Name: "probereports"},
	}
}

// newScheme returns a scheme with only the types that the manager reads and writes, because those
// of all API groups take megabytes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), seamarkv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("create the scheme: %w", err)
	}
	return scheme, nil
}

// startInformers creates the informers of all kinds, so that the manager is ready only when
// all of them are synced.
func startInformers(ctx context.Context, informers cache.Cache) error {
	for _, each := range []struct {
		object client.Object
		index  toolscache.Indexers
	}{
		{object: gather.NewNode()},
		{object: &corev1.Pod{}, index: gather.PodIndexers()},
		{object: &v1alpha1.PodProbeMarker{}},
		{object: &v1alpha1.NodePodProbe{}},
		{object: &seamarkv1alpha1.ProbeReport{}, index: gather.SliceIndexers()},
	} {
		informer, err := informers.GetInformer(ctx, each.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("create the informer of %T: %w", each.object, err)
		}
		if err := informer.AddIndexers(each.index); err != nil {
			return fmt.Errorf("index %T: %w", each.object, err)
		}
	}
	return nil
}

// newCompiler returns a compiler that forgets deleted markers. This does not depend on leader
// election, because the webhook compiles markers in every manager.
func newCompiler(ctx context.Context, informers cache.Cache) (*plan.Compiler, error) {
	markers, err := informers.GetInformer(ctx, &v1alpha1.PodProbeMarker{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch markers for the compiler: %w", err)
	}
	compiler := plan.NewCompiler()
	_, err = markers.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
			compiler.Forget(name.AsNamespacedName())
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("watch markers for the compiler: %w", err)
	}
	return compiler, nil
}

func addControllers(ctx context.Context, cfg *rest.Config, mgr ctrlmanager.Manager, hook *webhook.Webhook, reader gather.Reader, counters *metrics.Metrics, shortages *controller.Shortages, options Options) error {
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create the metadata client: %w", err)
	}
	recorder, err := startup.AddRecorder(cfg, mgr, Name)
	if err != nil {
		return err
	}
	informers, size := mgr.GetCache(), options.Controllers
	pods := apply.NewPods(metadataClient)
	podInbox, nodeInbox, markerInbox := &controller.Inbox{}, &controller.Inbox{}, &controller.Inbox{}
	refusals, problems := &controller.Refusals{}, controller.NewMarkProblems(markerInbox)
	err = errors.Join(
		nodeprobe.New(nodeprobe.Options{
			Reader: reader, Live: mgr.GetAPIReader(), Plans: apply.NewPlans(mgr.GetClient(), metadataClient), Slices: apply.NewSlices(metadataClient),
			Inbox: nodeInbox, Refusals: refusals, Recorder: recorder, Metrics: counters, Shortages: shortages, Now: time.Now,
		}).Add(mgr, informers, int(size.NodeProbe.Concurrency)),
		podmark.New(podmark.Options{
			Reader: reader, Pods: pods, Inbox: podInbox, Refusals: refusals, Problems: problems,
			Recorder: recorder, Metrics: counters, Now: time.Now,
		}).Add(mgr, informers, int(size.PodMark.Concurrency)),
		marker.New(marker.Options{
			Reader: reader, Markers: apply.NewMarkers(mgr.GetClient()), Pods: podInbox, Plans: nodeInbox, Refusals: refusals,
			Inbox: markerInbox, Problems: problems, Recorder: recorder, Metrics: counters, Shortages: shortages, Now: time.Now,
		}).Add(mgr, informers, int(size.Marker.Concurrency)),
	)
	if err != nil {
		return err
	}
	return addServerless(ctx, mgr, hook, serverless.Options{Reader: reader, Pods: pods, Inbox: podInbox}, options)
}
