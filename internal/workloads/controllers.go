// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/program/startup"
	metrics "github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler/statefulset"
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
	stores, err := newStores(ctx, mgr.GetCache(), withMarkers, *enabled.CloneSet.Enabled)
	if err != nil {
		return err
	}
	if !withMarkers {
		w.options.Logger.Info("Not watching PodProbeMarkers until their CRD is installed")
		if err := mgr.Add(&markerWait{mapper: mgr.GetRESTMapper(), log: w.options.Logger}); err != nil {
			return fmt.Errorf("add the wait for podprobemarkers: %w", err)
		}
	}
	recorder, err := startup.AddRecorder(w.config, mgr, Name)
	if err != nil {
		return err
	}
	direct, err := metadata.NewForConfigAndClient(metadata.ConfigFor(w.config), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create the metadata client: %w", err)
	}
	pods := direct.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	counters := metrics.New(w.options.Registry, cloneset.Kind().Kind, statefulset.Kind().Kind)
	shared := workload.Options{
		Stores: stores, Client: mgr.GetClient(), Recorder: recorder, Metrics: counters, Now: time.Now,
		Executor: apply.NewWorkload(apply.WorkloadOptions{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Parallel: parallel, Budget: budget,
			Timeout: requestTimeout, Now: time.Now, Wrote: counters.Wrote,
			DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
				return pods.Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &conditions})
			},
		}),
	}
	guard := &guard{
		live: mgr.GetAPIReader(), namespace: w.options.OpenKruiseNamespace, gates: map[string]*workload.Gate{}, metrics: counters, recorder: recorder,
		log: w.options.Logger, now: time.Now,
	}
	census := &census{leads: mgr.Elected()}
	if err := w.addKinds(ctx, mgr, shared, guard, census); err != nil {
		return err
	}
	counters.Watch(w.options.Version, census.count)
	if err := mgr.Add(guard); err != nil {
		return fmt.Errorf("add the guard: %w", err)
	}
	return nil
}

// addKinds adds the enabled controllers, each with a gate and an informer of its sets.
func (w *Workloads) addKinds(ctx context.Context, mgr ctrlmanager.Manager, shared workload.Options, guard *guard, census *census) error {
	informers, enabled := mgr.GetCache(), w.options.Controllers
	options := func(kind string, object client.Object, sets *workload.Store) (workload.Options, error) {
		own := shared
		own.Gate = workload.NewGate()
		guard.gates[kind] = own.Gate
		var err error
		own.Stores.Sets, err = newStore(ctx, informers, object, nil)
		*sets = own.Stores.Sets
		return own, err
	}
	if *enabled.CloneSet.Enabled {
		own, err := options(cloneset.Kind().Kind, &v1alpha1.CloneSet{}, &census.cloneSets)
		if err != nil {
			return err
		}
		if err := cloneset.New(own, w.options.RecreateForClaims).Add(mgr, informers, int(enabled.CloneSet.Concurrency)); err != nil {
			return err
		}
	}
	if *enabled.StatefulSet.Enabled {
		own, err := options(statefulset.Kind().Kind, &v1beta1.StatefulSet{}, &census.statefulSets)
		if err != nil {
			return err
		}
		if err := statefulset.New(own).Add(mgr, informers, int(enabled.StatefulSet.Concurrency)); err != nil {
			return err
		}
	}
	return nil
}
