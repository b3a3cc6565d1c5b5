// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
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

// addMetrics registers the manager's own metrics: what the controllers count, which it
// returns, and what is read from the caches at each scrape.
func addMetrics(ctx context.Context, mgr ctrlmanager.Manager, compiler *plan.Compiler, options Options) (*metrics.Metrics, error) {
	counters, err := metrics.New(options.Registry)
	if err != nil {
		return nil, err
	}
	plans, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodePodProbe{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following the NodePodProbes for the metrics: %w", err)
	}
	pending := metrics.NewPending(time.Now)
	if _, err := plans.AddEventHandler(pending); err != nil {
		return nil, fmt.Errorf("following the NodePodProbes for the metrics: %w", err)
	}
	collected := metrics.CollectorOptions{Cache: mgr.GetCache(), Pending: pending, Leads: mgr.Elected()}
	if options.Serverless {
		collected.Provided = provided(mgr.GetCache(), controller.Prober{
			Cache: mgr.GetCache(), Compiler: compiler, Defaults: options.Defaults, Serverless: true,
		})
	}
	err = errors.Join(
		options.Registry.Register(metrics.Info(options.Version)),
		options.Registry.Register(metrics.NewCollector(collected)),
	)
	if err != nil {
		return nil, fmt.Errorf("registering the manager's metrics: %w", err)
	}
	return counters, nil
}

// provided tells, of all pods of virtual kubelets, which probes are planned for them and what
// the conditions say that their providers write.
func provided(informers client.Reader, prober controller.Prober) func(context.Context) ([]metrics.Provided, error) {
	return func(ctx context.Context) ([]metrics.Provided, error) {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := informers.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("listing the nodes: %w", err)
		}
		markersOf := markersOnce(prober)
		var all []metrics.Provided
		for i := range nodes.Items {
			if !serverless.IsVirtual(nodes.Items[i].Labels) {
				continue
			}
			var pods corev1.PodList
			if err := informers.List(ctx, &pods, client.MatchingFields{controller.NodeNameField: nodes.Items[i].Name}); err != nil {
				return nil, fmt.Errorf("listing the pods of node %s: %w", nodes.Items[i].Name, err)
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

// markersOnce returns what reads the markers of a namespace, each namespace's once.
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
