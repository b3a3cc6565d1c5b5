// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	advancedcronjob "github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

const (
	// parallel is the maximum number of requests of one step at a time.
	parallel = 32
	// budget is the time after which a step starts no more requests.
	budget = 2 * time.Second
	// requestTimeout limits each write: the connection may hang.
	requestTimeout = 10 * time.Second
)

// addControllers adds the enabled controllers, the guard and the metrics.
func (w *Workloads) addControllers(ctx context.Context, mgr ctrlmanager.Manager) error {
	enabled := w.options.Controllers
	withMarkers, err := servesMarkers(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	stores, err := newStores(ctx, mgr.GetCache(), withMarkers, *enabled.CloneSet.Enabled || *enabled.DaemonSet.Enabled || *enabled.BroadcastJob.Enabled || *enabled.ImagePullJob.Enabled)
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
	counters := metrics.New(w.options.Registry, cloneset.Kind().Kind, statefulset.Kind().Kind, daemonset.Kind().Kind, advancedcronjob.Kind().Kind, broadcastjob.Kind().Kind, imagepull.Kind().Kind)
	shared := reconciler.Options{
		Stores: stores, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder, Metrics: counters, Now: time.Now,
		Executor: apply.New(apply.Options{
			Client: mgr.GetClient(), Grants: grants.NewReader(bindings, w.options.Namespace, time.Now), Live: mgr.GetAPIReader(),
			Parallel: parallel, Budget: budget,
			Timeout: requestTimeout, Now: time.Now, Wrote: counters.Wrote,
			DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
				return pods.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &conditions})
			},
		}),
	}
	guard := &guard{
		live: mgr.GetAPIReader(), namespace: w.options.OpenKruiseNamespace, gates: map[string]*reconciler.Gate{}, metrics: counters, recorder: recorder,
		log: w.options.Logger, now: time.Now,
	}
	census := &census{leads: mgr.Elected(), kinds: map[string]func() []planning.Count{}}
	if err := errors.Join(w.addKinds(ctx, mgr, shared, guard, census), w.addSidecarSets(ctx, mgr, shared, guard), w.addJobs(ctx, mgr, shared, guard, census)); err != nil {
		return err
	}
	counters.Watch(w.options.Version, census.count)
	if err := mgr.Add(guard); err != nil {
		return fmt.Errorf("add the guard: %w", err)
	}
	return nil
}

// addKinds adds the enabled controllers, each with a gate and an informer of its sets.
func (w *Workloads) addKinds(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard, census *census) error {
	enabled := w.options.Controllers
	inPlace, daemons := shared, shared
	if *enabled.ImagePullJob.Enabled && (w.options.PreDownloadInPlace || w.options.PreDownloadDaemonSets) {
		pulls, err := startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.ImagePullJob{}, reconciler.PodIndexers())
		if err != nil {
			return err
		}
		if w.options.PreDownloadInPlace {
			inPlace.Stores.Pulls = pulls
		}
		if w.options.PreDownloadDaemonSets {
			daemons.Stores.Pulls = pulls
		}
	}
	return errors.Join(
		addSet(ctx, mgr, enabled.CloneSet, cloneset.Set(w.options.RecreateForClaims), inPlace, guard, census),
		addSet(ctx, mgr, enabled.StatefulSet, statefulset.Set(), inPlace, guard, census),
		addSet(ctx, mgr, enabled.DaemonSet, daemonset.Set(daemonset.NewSlots(daemonset.Cache{
			Nodes:   func() []*corev1.Node { return reconciler.All[*corev1.Node](shared.Stores.Nodes) },
			Pods:    func(set owner.Key) []*corev1.Pod { return reconciler.Controlled[*corev1.Pod](shared.Stores.Pods, set) },
			Version: func() string { return shared.Stores.Pods.GetIndexer().LastStoreSyncResourceVersion() },
		})), daemons, guard, census),
	)
}

// addSet adds the controller of a kind of sets.
func addSet[S client.Object, T any](
	ctx context.Context, mgr ctrlmanager.Manager, enabled configv1alpha1.WorkloadController, kind planning.Kind[S, T],
	options reconciler.Options, guard *guard, census *census,
) error {
	return addKind(ctx, mgr, enabled, kind.Kind.Kind, kind.New(), options, guard, census, func(options reconciler.Options) *reconciler.Reconciler[S, T] {
		return reconciler.New(kind, options)
	})
}

// addKind adds the controller of a kind, if it is enabled, with a gate and an informer of its objects.
func addKind[S client.Object, C interface {
	Add(mgr ctrlmanager.Manager, informers cache.Cache, concurrency int) error
	Count(object S) planning.Count
}](
	ctx context.Context, mgr ctrlmanager.Manager, enabled configv1alpha1.WorkloadController, kind string, object S,
	options reconciler.Options, guard *guard, census *census, create func(reconciler.Options) C,
) error {
	if !*enabled.Enabled {
		return nil
	}
	options.Gate = reconciler.NewGate()
	guard.gates[kind] = options.Gate
	var err error
	if options.Stores.Sets, err = startup.NewStore(ctx, mgr.GetCache(), object, nil); err != nil {
		return err
	}
	controller := create(options)
	census.kinds[kind] = countAll(controller.Count, options.Stores.Sets)
	return controller.Add(mgr, mgr.GetCache(), int(enabled.Concurrency))
}

// census counts the sets in the cache for the metrics.
type census struct {
	// leads is closed when this process leads.
	leads <-chan struct{}
	// kinds count the sets of the enabled controllers.
	kinds map[string]func() []planning.Count
}

// count returns the counts of all sets by kind, nil if this process does not lead.
func (c *census) count() map[string][]planning.Count {
	select {
	case <-c.leads:
	default:
		return nil
	}
	counts := map[string][]planning.Count{}
	for kind, count := range c.kinds {
		counts[kind] = count()
	}
	return counts
}

// countAll returns a function that counts the sets in the store.
func countAll[S any](count func(S) planning.Count, store reconciler.Store) func() []planning.Count {
	return func() []planning.Count {
		counts := []planning.Count{}
		for _, object := range store.GetIndexer().List() {
			if set, ok := object.(S); ok {
				counts = append(counts, count(set))
			}
		}
		return counts
	}
}
