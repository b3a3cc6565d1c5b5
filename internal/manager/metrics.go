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
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
)

// addMetrics creates the manager's own metrics and returns those that the controllers
// update.
func addMetrics(ctx context.Context, mgr ctrlmanager.Manager, reader gather.Reader, options Options) (*metrics.Metrics, error) {
	// Reads of a cache do not fail.
	planOf := func(node string) *v1alpha1.NodePodProbe { return affected.LogError(reader.NodePlan(ctx, node))(ctx) }
	pending := metrics.NewPending(time.Now, planOf)
	for _, object := range []client.Object{&v1alpha1.NodePodProbe{}, &seamarkv1alpha1.ProbePlan{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T for the metrics: %w", object, err)
		}
		if _, err := informer.AddEventHandler(pending); err != nil {
			return nil, fmt.Errorf("watch %T for the metrics: %w", object, err)
		}
	}
	counters := metrics.New(options.Registry)
	counters.Watch(options.Version, metrics.Caches{
		Reader: mgr.GetCache(), Plans: reader.NodePlans, Slices: reader.Slices, Provided: provided(reader), Pending: pending, Leads: mgr.Elected(),
	})
	return counters, nil
}

// provided returns a function that returns the views of all pods on virtual nodes, whose providers
// report their states.
func provided(reader gather.Reader) func(context.Context) ([]podview.Pod, error) {
	return func(ctx context.Context) ([]podview.Pod, error) {
		if !reader.Serverless {
			return nil, nil
		}
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := reader.Client.List(ctx, nodes); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		var all []podview.Pod
		for i := range nodes.Items {
			if podview.NodeKindOf(&nodes.Items[i]) != podview.VirtualNode {
				continue
			}
			pods, err := reader.NodePods(ctx, nodes.Items[i].Name)
			if err != nil {
				return nil, err
			}
			for _, pod := range pods {
				markers, err := reader.Markers(ctx, pod.Namespace)
				if err != nil {
					return nil, err
				}
				view, err := reader.Pod(ctx, pod, markers)
				if err != nil {
					return nil, err
				}
				all = append(all, view)
			}
		}
		return all, nil
	}
}
