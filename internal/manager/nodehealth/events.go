// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/startup"
)

// Add runs Nodes under the manager.
func (n *Nodes) Add(mgr manager.Manager, informers cache.Cache) error {
	if err := mgr.Add(n); err != nil {
		return fmt.Errorf("add the watch of Nodes: %w", err)
	}
	return controllers.Add(mgr, "staleness", controllers.SubjectNode, n, 1,
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, n.markerEvents()))
}

// Start watches when a marker needs it. It implements manager.Runnable.
func (n *Nodes) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case q := <-n.needed:
		return n.watch(ctx, q)
	}
}

// markerEvents returns a handler that starts to watch when a marker has staleAfterSeconds or exclusive. If a marker
// changes, it enqueues the nodes whose states are not current, because the times may have changed.
func (n *Nodes) markerEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *v1alpha1.PodProbeMarker, _ bool) {
		if after == nil || !dependsOnNodes(after) || before != nil && before.UID == after.UID && before.Generation == after.Generation {
			return
		}
		n.start.Do(func() { n.needed <- q })
		n.states.Each(func(node string, _ nodeState) { controllers.Enqueue(q, types.NamespacedName{Name: node}) })
	})
}

// dependsOnNodes reports whether the marks depend on whether nodes are lost.
func dependsOnNodes(marker *v1alpha1.PodProbeMarker) bool {
	isExclusive := func(policy v1alpha1.ProbeMarkerPolicy) bool { return policy.Exclusive != nil }
	return slices.ContainsFunc(marker.Spec.Probes, func(probe v1alpha1.PodContainerProbe) bool {
		return probe.StaleAfterSeconds != nil || slices.ContainsFunc(probe.MarkerPolicy, isExclusive)
	})
}

// watch starts to watch Nodes and pods. When all Nodes are known, it enqueues those that
// have pods, and those that pods are bound to and that do not exist.
func (n *Nodes) watch(ctx context.Context, q controllers.Queue) error {
	nodes, err := startup.NewStore(ctx, n.Informers, &corev1.Node{}, nil)
	if err != nil {
		return err
	}
	pods, err := n.Informers.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	n.nodes = nodes
	if _, err := nodes.AddEventHandler(handle(func(before, after *corev1.Node) { n.nodeChanged(q, before, after) })); err != nil {
		return fmt.Errorf("watch Nodes: %w", err)
	}
	if _, err := pods.AddEventHandler(handle(func(before, after *corev1.Pod) { n.podChanged(q, before, after) })); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, n.Reader.Stores.Pods.HasSynced) {
		n.enqueueAll(q)
	}
	return nil
}

// enqueueAll enqueues all nodes that have pods, because pods may have kept their marks until now.
func (n *Nodes) enqueueAll(q controllers.Queue) {
	n.synced.Store(true)
	for _, node := range n.Reader.NodesOfPods() {
		n.states.Update(node, func(k *nodeState) bool {
			k.keptUnknown = true
			return true
		})
		controllers.Enqueue(q, types.NamespacedName{Name: node})
	}
}

// nodeChanged enqueues a Node whose health changes.
func (n *Nodes) nodeChanged(q controllers.Queue, before, after *corev1.Node) {
	was, is := podview.NodeReadiness(before), podview.NodeReadiness(after)
	if was == nil || is == nil || *was != *is {
		controllers.Enqueue(q, types.NamespacedName{Name: cmp.Or(after, before).Name})
	}
}

// podChanged enqueues the node of an agent whose readiness changes, and of another pod that may have to become stale: nothing
// else enqueues the node of a pod that comes while the states of the node are not current.
func (n *Nodes) podChanged(q controllers.Queue, before, after *corev1.Pod) {
	last := cmp.Or(after, before)
	if !podview.IsAgent(last, n.Namespace) {
		comes := after != nil && (before == nil || before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName || !maps.Equal(before.Labels, after.Labels))
		if comes && n.Outage(after.Spec.NodeName).Cause != "" {
			controllers.Enqueue(q, types.NamespacedName{Name: after.Spec.NodeName})
		}
		return
	}
	if before == nil || after == nil || before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		podview.AgentReadiness(before) != podview.AgentReadiness(after) {
		controllers.Enqueue(q, types.NamespacedName{Name: last.Spec.NodeName})
	}
}

// handle returns a handler that calls changed with the versions before and after each change.
func handle[T any](changed func(before, after *T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if after, ok := object.(*T); ok && !initial {
				changed(nil, after)
			}
		},
		UpdateFunc: func(old, object any) {
			before, ok := old.(*T)
			if after, is := object.(*T); ok && is {
				changed(before, after)
			}
		},
		DeleteFunc: func(object any) {
			if unseen, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unseen.Obj
			}
			if before, ok := object.(*T); ok {
				changed(before, nil)
			}
		},
	}
}
