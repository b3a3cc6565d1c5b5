// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/internal/program/decoding"
	"github.com/seamark-dev/seamark/internal/program/health"
)

// shutdown is the time that controllers have to finish their writes on shutdown.
const shutdown = 5 * time.Second

// Program runs controllers once the CRDs that they need are served. It serves health checks, metrics and
// profiles from before the CRDs are served until the controllers have stopped, whether or not it leads. Use
// New to create one.
type Program struct {
	// Config connects to the API server, whose priority and fairness limits requests.
	Config *rest.Config

	log     logr.Logger
	crds    *crds
	servers []server
	caches  caches
	// ends is closed when the program has to end.
	ends <-chan struct{}
}

// New returns a program that needs the custom resources of the kinds and serves at the addresses: its health checks and the given
// ones, the metrics of controller-runtime's registry, and profiles. It does not connect to the API server, and
// returns an error if an address is not available.
func New(cfg *rest.Config, log logr.Logger, addresses Addresses, needed []schema.GroupVersionKind, checks ...health.Check) (*Program, error) {
	p := &Program{Config: rest.CopyConfig(cfg), log: log}
	p.Config.QPS = -1
	var err error
	if p.crds, err = newCRDs(p.Config, log, needed...); err != nil {
		return nil, err
	}
	var own []health.Check
	if len(needed) > 0 {
		own = []health.Check{{Name: "crds", Unready: p.crds.unready}}
	}
	own = append(own, health.Check{Name: "caches", Unready: p.caches.unready})
	p.servers, err = listen(addresses, append(own, checks...))
	return p, err
}

// Run waits until the API server serves the CRDs, and runs the manager that assemble returns until
// the context ends. It returns an error if an address is not available or the lease is lost. The
// process must exit when Run returns.
func (p *Program) Run(ctx context.Context, assemble func(context.Context) (ctrlmanager.Manager, error)) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	healthy, closeHealth := context.WithCancel(context.WithoutCancel(ctx))
	defer closeHealth()
	served := make(chan error, 1)
	go func() { served <- serve(healthy, p.servers, stop) }()
	err := p.runControllers(running, assemble)
	closeHealth()
	return errors.Join(err, <-served)
}

func (p *Program) runControllers(ctx context.Context, assemble func(context.Context) (ctrlmanager.Manager, error)) error {
	if !p.crds.await(ctx) {
		return nil
	}
	p.ends = ctx.Done()
	mgr, err := assemble(ctx)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// Manager returns a manager with the options, and with those that all programs share. The program is
// ready when the caches of the manager are synced.
func (p *Program) Manager(options ctrlmanager.Options) (ctrlmanager.Manager, error) {
	// Names repeat if one process runs several programs in turn, as tests do.
	skipNames, grace := true, shutdown
	options.Logger = p.log
	// The mapper knows the kinds that the CRDs were waited for.
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.crds.mapper, nil }
	if err := p.follow(&options); err != nil {
		return nil, err
	}
	options.Client = client.Options{Cache: &client.CacheOptions{}}
	options.LeaderElectionReleaseOnCancel = true
	// The program serves all of these itself.
	options.HealthProbeBindAddress, options.Metrics.BindAddress, options.PprofBindAddress = "0", "0", "0"
	options.GracefulShutdownTimeout = &grace
	options.Controller = config.Controller{SkipNameValidation: &skipNames, Logger: p.log}
	inner, err := ctrlmanager.New(p.Config, options)
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	mgr := &isolating{Manager: inner, cache: p.caches.all, live: decoding.Reader{Reader: inner.GetAPIReader(), Scheme: options.Scheme}}
	if err := mgr.Add(&readiness{cache: mgr.GetCache(), synced: &p.caches.synced}); err != nil {
		return nil, fmt.Errorf("add health checks: %w", err)
	}
	return mgr, nil
}

// Store is an informer of a cache, whose objects are read without a copy.
type Store interface {
	cache.Informer
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
}

// NewStore creates the informer of the object's kind with the indexes, which may be nil. Programs
// create all of theirs before they start, so that they are ready only when all are synced.
func NewStore(ctx context.Context, informers cache.Cache, object client.Object, indexes toolscache.Indexers) (Store, error) {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("create the informer of %T: %w", object, err)
	}
	if err := informer.AddIndexers(indexes); err != nil {
		return nil, fmt.Errorf("index %T: %w", object, err)
	}
	store, ok := informer.(Store)
	if !ok {
		return nil, fmt.Errorf("informer %T of %T has no indexer", informer, object)
	}
	return store, nil
}

// grace is how long a program waits for a right: it may be started right after its role was changed.
const grace = 5 * time.Second

// MayList reports whether the role of the program permits the list, and logs if not: an older role lacks what a newer program
// reads. A cache that it may not list would keep the program from becoming ready.
func MayList(ctx context.Context, mgr ctrlmanager.Manager, list client.ObjectList) bool {
	var denied error
	_ = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, grace, true, func(context.Context) (bool, error) {
		err := mgr.GetAPIReader().List(ctx, list, client.Limit(1))
		if denied = nil; apierrors.IsForbidden(err) {
			denied = err
		}
		return denied == nil, nil
	})
	if denied != nil {
		mgr.GetLogger().Error(denied, "Going on without objects that the role does not permit to list and watch: restart the program when it does",
			"type", fmt.Sprintf("%T", list))
	}
	return denied == nil
}

// Recorder returns an event recorder with the named program as the source. It records while the
// manager runs.
func (p *Program) Recorder(mgr ctrlmanager.Manager, name string) (record.EventRecorder, error) {
	// Events are many: protobuf costs the API server less than JSON, the default.
	cfg := rest.CopyConfig(p.Config)
	cfg.ContentType = runtime.ContentTypeProtobuf
	client, err := typedcorev1.NewForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create the client for events: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	err = mgr.Add(&recording{broadcaster: broadcaster, sink: &typedcorev1.EventSinkImpl{Interface: client.Events("")}})
	if err != nil {
		return nil, fmt.Errorf("add the event recorder: %w", err)
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: name}), nil
}

// recording sends events to the API server.
type recording struct {
	broadcaster record.EventBroadcaster
	sink        record.EventSink
}

// Start records until the context ends.
func (r *recording) Start(ctx context.Context) error {
	r.broadcaster.StartRecordingToSink(r.sink)
	<-ctx.Done()
	r.broadcaster.Shutdown()
	return nil
}

// NeedLeaderElection returns false: it runs in every manager, but only the leader has events.
func (r *recording) NeedLeaderElection() bool { return false }
