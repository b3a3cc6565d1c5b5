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
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	metrics "github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// addMetrics creates the manager's own metrics and returns those that the controllers
// update.
func addMetrics(ctx context.Context, mgr ctrlmanager.Manager, reader gather.Reader, shortages *controller.Shortages, options Options) (*metrics.Metrics, error) {
	plans, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodePodProbe{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch NodePodProbes for the metrics: %w", err)
	}
	pending := metrics.NewPending(time.Now)
	if _, err := plans.AddEventHandler(pending); err != nil {
		return nil, fmt.Errorf("watch NodePodProbes for the metrics: %w", err)
	}
	caches := metrics.Caches{Reader: mgr.GetCache(), Slices: reader.Slices, Pending: pending, Shortages: shortages.Counts, Leads: mgr.Elected()}
	if options.Serverless {
		caches.Provided = provided(reader)
	}
	counters := metrics.New(options.Registry)
	counters.Watch(options.Version, caches)
	return counters, nil
}

// provided returns a function that reports, for all pods on virtual nodes, the planned probes
// and the states that their providers report.
func provided(reader gather.Reader) func(context.Context) ([]metrics.Provided, error) {
	return func(ctx context.Context) ([]metrics.Provided, error) {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := reader.Client.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		markersOf := markersOnce(reader)
		var all []metrics.Provided
		for i := range nodes.Items {
			if view.PlaceOn(&nodes.Items[i]) != view.PlaceVirtual {
				continue
			}
			pods, err := reader.NodePods(ctx, nodes.Items[i].Name)
			if err != nil {
				return nil, err
			}
			for _, pod := range pods {
				found, err := providedPod(ctx, reader, pod, markersOf)
				if err != nil {
					return nil, err
				}
				all = append(all, found)
			}
		}
		return all, nil
	}
}

// markersOnce returns a function that reads the markers of each namespace once.
func markersOnce(reader gather.Reader) func(ctx context.Context, namespace string) ([]*plan.Marker, error) {
	read := make(map[string][]*plan.Marker)
	return func(ctx context.Context, namespace string) ([]*plan.Marker, error) {
		markers, found := read[namespace]
		if found {
			return markers, nil
		}
		markers, err := reader.Markers(ctx, namespace)
		if err == nil {
			read[namespace] = markers
		}
		return markers, err
	}
}

func providedPod(
	ctx context.Context, reader gather.Reader, pod *corev1.Pod, markersOf func(context.Context, string) ([]*plan.Marker, error),
) (metrics.Provided, error) {
	markers, err := markersOf(ctx, pod.Namespace)
	if err != nil {
		return metrics.Provided{}, err
	}
	v, err := reader.Pod(ctx, pod, markers)
	if err != nil {
		return metrics.Provided{}, err
	}
	found := metrics.Provided{Namespace: pod.Namespace, States: make(map[probeid.ID]v1alpha1.ProbeState, len(v.Plan.Probes))}
	for _, probe := range v.Plan.Probes {
		state, _ := v.Report.State(probe)
		found.States[probe.ID] = state.State
	}
	return found, nil
}
