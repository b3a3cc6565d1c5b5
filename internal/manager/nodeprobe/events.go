// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "nodeprobe", controllers.SubjectNode, r, concurrency,
		source.Kind(informers, gather.NewNode(), r.nodeEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controllers.MarkerEvents(r.touchNodes)),
		source.Kind(informers, &v1alpha1.NodePodProbe{}, r.nodePodProbeEvents()),
		source.Kind(informers, &seamarkv1alpha1.ProbePlan{}, r.planEvents()),
		source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
		r.Inbox.Source())
}

// touch opens or extends the node's burst and enqueues the node for when it may be due.
func (r *Reconciler) touch(q controllers.Queue, node string, debounce debounce) {
	if node == "" {
		return
	}
	now := r.Now()
	r.bursts.Update(node, func(b *burst) bool {
		b.touch(now, debounce)
		return true
	})
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}, debounce.idle)
}

// debouncing returns how long the compilation of the node still has to wait. It closes the node's burst
// if the compilation is due. A node without a burst was enqueued for another reason, and is due.
func (r *Reconciler) debouncing(node string) (wait time.Duration) {
	now := r.Now()
	r.bursts.Update(node, func(b *burst) bool {
		wait = b.wait(now)
		return wait > 0
	})
	return wait
}

// nodeEvents returns a handler that touches a node when it is created, deleted or recreated,
// and when its labels start or cease to be those of a node without an agent.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *metav1.PartialObjectMetadata, _ bool) {
		if before == nil || after == nil || before.UID != after.UID || serverless.HasAgent(before.Labels) != serverless.HasAgent(after.Labels) {
			r.touch(q, cmp.Or(after, before).Name, afterPod())
		}
	})
}

// podEvents returns a handler that touches the node of a pod when the pod's plan may change.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *corev1.Pod, _ bool) {
		markers := func() []*plan.Marker {
			return affected.LogError(r.Reader.MarkersOf(ctx, after.Namespace, before.Labels, after.Labels))(ctx)
		}
		if before != nil && after != nil && plan.SamePlan(before, after, markers) {
			return
		}
		// After a lost watch, a pod and its successor with the same name, perhaps on
		// another node, appear as two versions of one object.
		for _, pod := range []*corev1.Pod{before, after} {
			if pod != nil && (after == nil || plan.Eligible(pod)) {
				r.touch(q, pod.Spec.NodeName, afterPod())
			}
		}
	})
}

// touchNodes touches the nodes of the pods that match the marker's selector, and those whose
// plan has a probe of the marker: the pods may have changed their labels since.
func (r *Reconciler) touchNodes(ctx context.Context, q controllers.Queue, marker *v1alpha1.PodProbeMarker) {
	pods := affected.LogError(r.Reader.SelectedPods(ctx, marker))(ctx)
	nodes := sets.New[string]()
	for _, pod := range pods {
		nodes.Insert(pod.Spec.NodeName)
	}
	for node := range nodes.Union(affected.LogError(r.Reader.Planned(ctx, marker))(ctx)) {
		r.touch(q, node, afterMarker())
	}
}

// nodePodProbeEvents returns a handler that touches a node when its NodePodProbe is created or
// deleted, and when another client changes the reference to its plan or writes a plan into it. It ignores
// the status and the other annotations.
func (r *Reconciler) nodePodProbeEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *v1alpha1.NodePodProbe, _ bool) {
		if after == nil {
			r.expectedHeaders.Forget(before.Name)
			r.Refusals.Note(client.ObjectKeyFromObject(before), nil)
		}
		if before == nil || after == nil || before.UID != after.UID || before.Generation != after.Generation ||
			before.Annotations[v1alpha1.ProbePlansAnnotationKey] != after.Annotations[v1alpha1.ProbePlansAnnotationKey] {
			r.touch(q, cmp.Or(after, before).Name, afterPod())
		}
	})
}

// planEvents returns a handler that touches a node when one of its ProbePlans is created, changed or
// deleted: the NodePodProbe may refer to it now, or another client did it.
func (r *Reconciler) planEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbePlan, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *seamarkv1alpha1.ProbePlan, _ bool) {
		if after == nil {
			r.expectedPlans.Forget(before.Name)
			r.unstored.Forget(before.Name)
		}
		if before == nil || after == nil || before.UID != after.UID || before.Generation != after.Generation {
			r.touch(q, cmp.Or(after, before).NodeName, afterPod())
		}
	})
}
