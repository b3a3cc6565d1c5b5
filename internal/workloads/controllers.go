// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// parallel is the maximum number of requests of one step at a time.
	parallel = 32
	// budget is the time after which a step starts no more requests.
	budget = 2 * time.Second
	// requestTimeout limits each write: the connection may hang.
	requestTimeout = 10 * time.Second
)

// addControllers adds the enabled controllers, the watch of the foreign lease and the metrics.
func (w *Workloads) addControllers(ctx context.Context, mgr ctrlmanager.Manager) error {
	rows := enabled(w.options.Controllers)
	withMarkers, err := servesMarkers(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	stores, err := newStores(ctx, mgr, withMarkers, slices.ContainsFunc(rows, readsNodes))
	if err != nil {
		return err
	}
	if !withMarkers {
		w.options.Logger.Info("Not watching PodProbeMarkers until their CRD is installed")
		if err := mgr.Add(&markerWait{mapper: mgr.GetRESTMapper(), log: w.options.Logger}); err != nil {
			return fmt.Errorf("add the wait for podprobemarkers: %w", err)
		}
	}
	recorder, err := w.program.Recorder(mgr, Name)
	if err != nil {
		return err
	}
	direct, err := metadata.NewForConfigAndClient(metadata.ConfigFor(w.program.Config), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create the metadata client: %w", err)
	}
	pods := direct.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	bindings, err := startup.NewStore(ctx, mgr.GetCache(), &rbacv1.RoleBinding{}, nil)
	if err != nil {
		return err
	}
	counters := metrics.New(w.options.Registry)
	shared := reconciler.Options{
		Stores: stores, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder, Metrics: counters, Now: time.Now,
		Executor: apply.New(apply.Options{
			Client: mgr.GetClient(), Grants: grants.NewReader(bindings, w.options.Namespace, time.Now), Live: mgr.GetAPIReader(),
			Parallel: parallel, Budget: budget,
			Timeout: requestTimeout, Now: time.Now, Wrote: counters.Wrote, Failed: counters.Failed,
			DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
				return pods.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &conditions})
			},
		}),
	}
	foreign := &foreignLease{
		live: mgr.GetAPIReader(), namespace: w.options.OpenKruiseNamespace, pauses: map[string]*reconciler.Pause{}, metrics: counters, recorder: recorder,
		log: w.options.Logger, now: time.Now,
	}
	census := &census{leads: mgr.Elected(), kinds: map[string]func() []planning.Progress{}}
	if err := w.addKinds(ctx, mgr, rows, shared, foreign, census); err != nil {
		return err
	}
	counters.Watch(w.options.Version, census.count)
	if err := mgr.Add(foreign); err != nil {
		return fmt.Errorf("add the watch of the foreign lease: %w", err)
	}
	return nil
}

// addKinds adds the controllers of the kinds, each with a pause and an informer of its objects, which are indexed by
// controller: sets have ImagePullJobs, and AdvancedCronJobs have BroadcastJobs.
func (w *Workloads) addKinds(
	ctx context.Context, mgr ctrlmanager.Manager, all []kinds.Kind, shared reconciler.Options, foreign *foreignLease, census *census,
) error {
	create := w.constructors(mgr)
	for i := range all {
		kind, options := &all[i], shared
		options.Pause = reconciler.NewPause()
		foreign.pauses[kind.Kind] = options.Pause
		var err error
		if options.Stores.Sets, err = startup.NewStore(ctx, mgr.GetCache(), kind.New(), reconciler.ControllerIndexers()); err != nil {
			return err
		}
		constructor := create[kind.Kind]
		if constructor == nil {
			return fmt.Errorf("no constructor for the controller of %s", kind.Kind)
		}
		added, err := constructor(ctx, options)
		if err != nil {
			return err
		}
		if counted, ok := added.(interface{ Progress() []planning.Progress }); ok {
			census.kinds[kind.Kind] = counted.Progress
		}
		if err := added.Add(mgr, mgr.GetCache(), int(kind.Controller(&w.options.Controllers).Concurrency)); err != nil {
			return err
		}
	}
	return nil
}

// census counts the sets in the cache for the metrics.
type census struct {
	// leads is closed when this process leads.
	leads <-chan struct{}
	// kinds count the sets of the enabled controllers.
	kinds map[string]func() []planning.Progress
}

// count returns the counts of all sets by kind, nil if this process does not lead.
func (c *census) count() map[string][]planning.Progress {
	select {
	case <-c.leads:
	default:
		return nil
	}
	counts := map[string][]planning.Progress{}
	for kind, count := range c.kinds {
		counts[kind] = count()
	}
	return counts
}
