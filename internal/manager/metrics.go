// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// addMetrics creates the manager's own metrics and returns those that the controllers
// update.
func addMetrics(ctx context.Context, mgr ctrlmanager.Manager, compiler *plan.Compiler, options Options) (*metrics.Metrics, error) {
	plans, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodePodProbe{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch NodePodProbes for the metrics: %w", err)
	}
	pending := metrics.NewPending(time.Now)
	if _, err := plans.AddEventHandler(pending); err != nil {
		return nil, fmt.Errorf("watch NodePodProbes for the metrics: %w", err)
	}
	caches := metrics.Caches{Reader: mgr.GetCache(), Pending: pending, Leads: mgr.Elected()}
	if options.Serverless {
		caches.Provided = provided(mgr.GetCache(), controller.Prober{
			Cache: mgr.GetCache(), Compiler: compiler, Defaults: options.Defaults, Serverless: true,
		})
	}
	counters := metrics.New(options.Registry)
	counters.Watch(options.Version, caches)
	return counters, nil
}

// provided returns a function that lists the pods of virtual nodes, with their planned
// probes and the states that their providers report.
func provided(informers client.Reader, prober controller.Prober) func(context.Context) ([]metrics.Provided, error) {
	return func(ctx context.Context) ([]metrics.Provided, error) {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := informers.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		markersOf := markersOnce(prober)
		var all []metrics.Provided
		for i := range nodes.Items {
			if !serverless.IsVirtual(nodes.Items[i].Labels) {
				continue
			}
			var pods corev1.PodList
			if err := informers.List(ctx, &pods, client.MatchingFields{controller.NodeNameField: nodes.Items[i].Name}); err != nil {
				return nil, fmt.Errorf("list pods of node %s: %w", nodes.Items[i].Name, err)
			}
			for j := range pods.Items {
				pod, err := providedPod(ctx, prober, &pods.Items[j], markersOf)
				if err != nil {
					return nil, err
				}
				all = append(all, pod)
			}
		}
		return all, nil
	}
}

// markersOnce returns a function that reads the markers of a namespace and caches them.
func markersOnce(prober controller.Prober) func(ctx context.Context, namespace string) ([]*plan.Marker, error) {
	read := make(map[string][]*plan.Marker)
	return func(ctx context.Context, namespace string) ([]*plan.Marker, error) {
		markers, found := read[namespace]
		if found {
			return markers, nil
		}
		markers, err := controller.Markers(ctx, prober.Cache, prober.Compiler, namespace)
		if err == nil {
			read[namespace] = markers
		}
		return markers, err
	}
}

func providedPod(
	ctx context.Context, prober controller.Prober, pod *corev1.Pod, markersOf func(context.Context, string) ([]*plan.Marker, error),
) (metrics.Provided, error) {
	markers, err := markersOf(ctx, pod.Namespace)
	if err != nil {
		return metrics.Provided{}, err
	}
	probes, report, err := prober.Probed(ctx, pod, markers)
	if err != nil {
		return metrics.Provided{}, err
	}
	found := metrics.Provided{Namespace: pod.Namespace, States: make(map[probeid.ID]v1alpha1.ProbeState, len(probes))}
	for _, probe := range probes {
		found.States[probe.ID] = report.States[probe.ID].State
	}
	return found, nil
}
