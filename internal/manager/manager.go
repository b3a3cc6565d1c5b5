// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager assembles the manager: caches, controllers, webhook, leader election,
// health and metrics. These are all API permissions that it requires:
//
//	nodes                        get list watch
//	pods                         get list watch
//	pods/status                  patch
//	nodepodprobes                get list watch create patch delete
//	probeplans                   get list watch create update delete deletecollection
//	probereports                 get list watch delete deletecollection
//	podprobemarkers              get list watch patch
//	podprobemarkers/status       patch
//	poddisruptionbudgets         get list watch, for the limits of guards
//	events                       create patch
//	leases, in its namespace     get create update, for leader election
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
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/guardlimit"
	"github.com/seamark-dev/seamark/internal/manager/marker"
	"github.com/seamark-dev/seamark/internal/manager/nodehealth"
	"github.com/seamark-dev/seamark/internal/manager/nodeprobe"
	"github.com/seamark-dev/seamark/internal/manager/podmark"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/manager/virtualpod"
	"github.com/seamark-dev/seamark/internal/manager/webhook"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/health"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
)

// Name is the manager's name in leases and events.
const Name = "seamark-manager"

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
	// Namespace is that of the agents, which is the manager's own. If it is empty, the readiness of their
	// pods does not make states stale.
	Namespace string
	// Disabled means that the feature gate PodProbeMarkerGate is off: no controller runs, and
	// plans and marks do not change.
	Disabled bool
	// Serverless enables support for pods on virtual nodes, if the manager is not Disabled:
	// the feature gate EnablePodProbeMarkerOnServerless.
	Serverless bool
	// Webhook annotates pods for virtual nodes when they are created. If it is nil or the
	// manager is not Serverless, only the controller annotates them.
	Webhook *webhook.Options
	// Grants are the resources of seamark-workloads, in whose namespaces the manager lets it write pods.
	Grants []string
	// Controllers is the concurrency of each controller, at least 1.
	Controllers configv1alpha1.Controllers
	// Defaults are the values of probe fields that markers leave unset.
	Defaults plan.Defaults
	// Excluded are the namespaces whose pods are not probed.
	Excluded []string
	// Version of the program, for the metrics.
	Version string
	// Registry receives the manager's own metrics.
	Registry prometheus.Registerer
	// Logger receives the log of the manager and its controllers.
	Logger logr.Logger
}

// views returns the settings that views depend on.
func (o Options) views() podview.Options {
	return podview.Options{Defaults: o.Defaults, Serverless: o.Serverless}
}

// Manager runs the controllers.
type Manager struct {
	options Options
	program *startup.Program
	hook    *webhook.Webhook
}

// New returns a manager. It does not connect to the API server, and returns an error if the
// address of the health checks is not available.
func New(options Options) (*Manager, error) {
	hook, err := newWebhook(options)
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options, hook: hook}
	var checks []health.Check
	if m.hook.Server != nil {
		checks = append(checks, health.Check{Name: "webhook", Unready: m.hook.Server.StartedChecker()})
	}
	addresses := startup.Addresses{
		Health: options.HealthProbeBindAddress, Metrics: options.MetricsBindAddress, Profiles: options.PprofBindAddress,
	}
	m.program, err = startup.New(options.Config, options.Logger, addresses, kinds(options), checks...)
	return m, err
}

// Run waits until the API server serves the CRDs and runs the controllers until the context ends.
// Meanwhile it serves the health checks. It returns an error if an address is not available or
// the lease is lost. The process must exit when Run returns.
func (m *Manager) Run(ctx context.Context) error { return m.program.Run(ctx, m.assemble) }

// assemble adds the controllers to a manager. It returns an error if an address is not available.
func (m *Manager) assemble(ctx context.Context) (ctrlmanager.Manager, error) {
	options := m.options
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := m.program.Manager(ctrlmanager.Options{
		Scheme:                  scheme,
		Cache:                   Caches(options),
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        Name,
		LeaderElectionNamespace: options.LeaderElectionNamespace,
		WebhookServer:           m.hook.Server,
	})
	if err != nil {
		return nil, err
	}
	if err := addGranter(mgr, options); err != nil {
		return nil, err
	}
	if options.Disabled {
		options.Logger.Info("Not starting controllers because feature gate PodProbeMarkerGate is off: plans and marks do not change")
		return mgr, nil
	}
	clients, err := m.clients(ctx, mgr)
	if err != nil {
		return nil, err
	}
	reader, err := AddControllers(ctx, mgr, options, clients)
	if err != nil || m.hook.Server == nil {
		return mgr, err
	}
	// The controllers run in the leader, and the webhook in every manager.
	return mgr, m.hook.Add(ctx, mgr, reader)
}

// addGranter adds what lets seamark-workloads write pods in some namespaces, if it is enabled.
func addGranter(mgr ctrlmanager.Manager, options Options) error {
	if len(options.Grants) == 0 {
		return nil
	}
	granter, err := grants.New(grants.Options{Config: options.Config, Namespace: options.Namespace, Resources: options.Grants, Log: options.Logger})
	if err != nil {
		return err
	}
	if err := mgr.Add(granter); err != nil {
		return fmt.Errorf("add the granter: %w", err)
	}
	return nil
}

// kinds returns the kinds of the custom resources that the controllers need.
func kinds(options Options) []schema.GroupVersionKind {
	if options.Disabled {
		return nil
	}
	kruise, own := v1alpha1.GroupVersion(), seamarkv1alpha1.GroupVersion()
	return []schema.GroupVersionKind{
		kruise.WithKind("NodePodProbe"), kruise.WithKind("PodProbeMarker"), own.WithKind("ProbePlan"), own.WithKind("ProbeReport"),
	}
}

// newScheme returns a scheme with only the types that the manager reads and writes, because those
// of all API groups take megabytes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, (&runtime.SchemeBuilder{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, policyv1.AddToScheme,
		v1alpha1.AddToScheme, seamarkv1alpha1.AddToScheme,
	}).AddToScheme(scheme)
}

// Clients are how the controllers write, besides the client of the manager that runs them.
type Clients struct {
	// Metadata patches objects, and returns only their metadata.
	Metadata metadata.Interface
	// Recorder records events.
	Recorder record.EventRecorder
	// Guards are whether the manager may read PodDisruptionBudgets.
	Guards bool
}

// clients returns the clients of the controllers that the manager runs.
func (m *Manager) clients(ctx context.Context, mgr ctrlmanager.Manager) (Clients, error) {
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(m.program.Config), mgr.GetHTTPClient())
	if err != nil {
		return Clients{}, fmt.Errorf("create the metadata client: %w", err)
	}
	recorder, err := m.program.Recorder(mgr, Name)
	return Clients{Metadata: metadataClient, Recorder: recorder, Guards: startup.MayList(ctx, mgr, &policyv1.PodDisruptionBudgetList{})}, err
}

// AddControllers adds the controllers of a leader and their metrics to the manager, and returns what reads
// its cache. The cache must have the options that Caches returns.
func AddControllers(ctx context.Context, mgr ctrlmanager.Manager, options Options, clients Clients) (gather.Reader, error) {
	reader, err := newReader(ctx, mgr.GetCache(), options)
	if err != nil {
		return reader, err
	}
	counters, err := addMetrics(ctx, mgr, reader, options)
	if err != nil {
		return reader, err
	}
	informers, size := mgr.GetCache(), options.Controllers
	pods, plans := apply.NewPods(clients.Metadata), apply.NewPlans(mgr.GetClient(), clients.Metadata)
	podInbox, nodeInbox := &controllers.Inbox{}, &controllers.Inbox{}
	refusals, marks := &problems.Refusals{}, &problems.Marks{}
	limiter := nodehealth.NewLimiter(podInbox)
	stale := &controllers.Inbox{}
	nodes := nodehealth.New(nodehealth.Options{
		Reader: reader, Informers: informers, Namespace: options.Namespace, Pods: podInbox, Counted: stale, Limiter: limiter, Now: time.Now,
	})
	reader.Outages = nodes.Outage
	counters.WatchStale(nodes.Count, limiter.Waiting)
	markers := apply.NewMarkers(mgr.GetClient(), clients.Metadata)
	marking := podmark.New(podmark.Options{
		Reader: reader, Pods: pods, Live: mgr.GetAPIReader(), Inbox: podInbox, Limiter: limiter,
		Refusals: refusals, Problems: marks, Recorder: clients.Recorder, Metrics: counters, Now: time.Now,
	})
	counters.WatchExclusive(marking.Waiting)
	err = errors.Join(
		mgr.Add(limiter), nodes.Add(mgr, informers),
		nodeprobe.New(nodeprobe.Options{
			Reader: reader, Live: mgr.GetAPIReader(), Plans: plans, Slices: plans,
			Inbox: nodeInbox, Refusals: refusals, Metrics: counters, Now: time.Now,
		}).Add(mgr, informers, int(size.NodeProbe.Concurrency)),
		marking.Add(mgr, informers, int(size.PodMark.Concurrency)),
		marker.New(marker.Options{
			Reader: reader, Markers: markers, Pods: podInbox, Plans: nodeInbox, Refusals: refusals,
			Problems: marks, Stale: stale, Recorder: clients.Recorder, Metrics: counters, Now: time.Now,
		}).Add(mgr, informers, int(size.Marker.Concurrency)),
		addGuards(ctx, mgr, options, clients, guardlimit.Options{
			Reader: reader, Marked: &marking.Reconciled, Excluded: options.Excluded, Pods: pods, Recorder: clients.Recorder, Metrics: counters, Now: time.Now,
		}),
	)
	if err != nil || !options.Serverless {
		return reader, err
	}
	return reader, virtualpod.New(virtualpod.Options{Reader: reader, Pods: pods, Inbox: podInbox}).Add(mgr, informers, int(size.Serverless.Concurrency))
}

// addGuards adds the controller that releases pods from guards, if the manager may read them.
func addGuards(ctx context.Context, mgr ctrlmanager.Manager, options Options, clients Clients, limits guardlimit.Options) (err error) {
	if !clients.Guards {
		return nil
	}
	if limits.Budgets, err = startup.NewStore(ctx, mgr.GetCache(), &policyv1.PodDisruptionBudget{}, nil); err != nil {
		return err
	}
	return guardlimit.New(limits).Add(mgr, mgr.GetCache(), int(options.Controllers.PodMark.Concurrency))
}

// newWebhook returns a webhook without a server if the webhook is disabled.
func newWebhook(options Options) (*webhook.Webhook, error) {
	if options.Disabled || !options.Serverless || options.Webhook == nil {
		return &webhook.Webhook{}, nil
	}
	unlimited := rest.CopyConfig(options.Config)
	unlimited.QPS = -1
	return webhook.New(unlimited, *options.Webhook)
}

// Caches returns the options of the manager's cache, which keeps only the fields that views
// are built from. Readers share the cached objects without a copy, because no controller
// changes what it reads. Whole Nodes are cached only when a marker has staleAfterSeconds.
func Caches(options Options) cache.Options {
	pods, plans := podview.NewPodTrimmer(options.views()).WithAgents(options.Namespace), podview.NewPlanTrimmer()
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     gather.LivePods(),
				Transform: podview.Transform(pods.Trim),
			},
			&policyv1.PodDisruptionBudget{}: {
				Label: guard.Labels().AsSelector(), Transform: podview.Transform(guard.Trim),
			},
			gather.NewNode():               {Transform: podview.TransformNode},
			&v1alpha1.PodProbeMarker{}:     {},
			&v1alpha1.NodePodProbe{}:       {Transform: podview.Transform(plans.Trim)},
			&seamarkv1alpha1.ProbePlan{}:   {Transform: podview.Transform(plans.TrimSlice)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: podview.Transform(podview.TrimReport)},
		},
	}
}

// newReader creates the informers of all kinds, and returns a reader of them. Its compiler forgets
// deleted markers, whether or not the manager leads, because the webhook compiles in every manager.
func newReader(ctx context.Context, informers cache.Cache, options Options) (gather.Reader, error) {
	var stores [6]startup.Store
	for i, each := range []struct {
		object  client.Object
		indexes toolscache.Indexers
	}{
		{&corev1.Pod{}, gather.PodIndexers()},
		{&v1alpha1.PodProbeMarker{}, gather.MarkerIndexers()},
		{&seamarkv1alpha1.ProbeReport{}, gather.SliceIndexers()},
		{gather.NewNode(), nil},
		{&v1alpha1.NodePodProbe{}, gather.NodePodProbeIndexers()},
		{&seamarkv1alpha1.ProbePlan{}, gather.PlanIndexers()},
	} {
		var err error
		if stores[i], err = startup.NewStore(ctx, informers, each.object, each.indexes); err != nil {
			return gather.Reader{}, err
		}
	}
	markers, compiler := stores[1], plan.NewCompiler(options.Excluded...)
	_, err := markers.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
			compiler.Forget(name.AsNamespacedName())
		}
	}})
	if err != nil {
		return gather.Reader{}, fmt.Errorf("watch markers for the compiler: %w", err)
	}
	if err := stores[0].AddIndexers(gather.AgentIndexers(options.Namespace)); err != nil {
		return gather.Reader{}, fmt.Errorf("index the pods of agents: %w", err)
	}
	return gather.Reader{
		Client: informers, Stores: gather.Stores{Pods: stores[0], Markers: markers, Slices: stores[2], NodePodProbes: stores[4], Plans: stores[5]},
		Compiler: compiler, Options: options.views(),
	}, nil
}
