// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

const (
	// setIndex is the index of the pods by the sets that they have.
	setIndex = "sidecarset"
	// boundIndex is the index of the sets in force by the namespaces that they are bound to.
	boundIndex = "bound"
	// anyNamespace is the value of sets that are bound to none.
	anyNamespace = ""
	// podPause is how long events of pods are collected: a set with many pods is planned once for all.
	podPause = 100 * time.Millisecond
	// recountPeriod is how often selected pods without a set are counted, if there are any: some end.
	recountPeriod = time.Minute
)

// PodIndexers returns the indexers of the pods.
func PodIndexers() toolscache.Indexers {
	return toolscache.Indexers{setIndex: func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Annotations[v1alpha1.SidecarSetListKey] != "" {
			return inject.Sets(pod), nil
		}
		return nil, nil
	}}
}

// SetIndexers returns the indexers of the sets.
func SetIndexers() toolscache.Indexers {
	return toolscache.Indexers{boundIndex: func(object any) ([]string, error) {
		set, ok := object.(*v1alpha1.SidecarSet)
		if !ok || set.Status.InForce == nil {
			return nil, nil
		}
		if names, bound := entries.Named(set.Status.InForce.Targets()); bound {
			return names, nil
		}
		return []string{anyNamespace}, nil
	}}
}

// pods returns the pods that have the set.
func (c *Controller) pods(set *v1alpha1.SidecarSet) []*corev1.Pod {
	return reconciler.Indexed[*corev1.Pod](c.Pods, setIndex, set.Name)
}

// podChanged enqueues the sets that the pod has, and those that select it although it does not have them.
func (c *Controller) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, initial bool) {
	pod := after
	if pod == nil {
		pod = before
	}
	if initial || before != nil && after != nil && !matters(before, after) {
		return
	}
	names := inject.Sets(pod)
	for _, name := range names {
		controllers.EnqueueAt(q, types.NamespacedName{Name: name}, podPause, 0)
	}
	if before != nil && after != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	if isExempt(pod) {
		return
	}
	// There may be thousands of sets that are bound to other namespaces.
	for _, set := range slices.Concat(
		reconciler.Indexed[*v1alpha1.SidecarSet](c.Sets, boundIndex, pod.Namespace), reconciler.Indexed[*v1alpha1.SidecarSet](c.Sets, boundIndex, anyNamespace),
	) {
		if slices.Contains(names, set.Name) {
			continue
		}
		// All pods are counted again, so not for those of other namespaces. The labels may be others than before.
		if !c.selects(set, pod) && (before == nil || !c.selects(set, before)) || !c.maySelectNamespace(set.Status.InForce, pod.Namespace) {
			continue
		}
		c.states.update(set, func(s *setState) { s.uninjected = -1 })
		controllers.EnqueueAt(q, types.NamespacedName{Name: set.Name}, podPause, 0)
	}
}

// guards returns the guards of each namespace, which it reads once.
func (c *Controller) guards() func(namespace string) guard.Guards {
	read := map[string]guard.Guards{}
	return func(namespace string) guard.Guards {
		if _, found := read[namespace]; !found {
			read[namespace] = reconciler.Guards(c.Budgets, namespace)
		}
		return read[namespace]
	}
}

// guardsChanged enqueues the sets that may select a namespace whose guards change.
func (c *Controller) guardsChanged(q controllers.Queue, namespace string) {
	for _, set := range slices.Concat(
		reconciler.Indexed[*v1alpha1.SidecarSet](c.Sets, boundIndex, namespace), reconciler.Indexed[*v1alpha1.SidecarSet](c.Sets, boundIndex, anyNamespace),
	) {
		if c.maySelectNamespace(set.Status.InForce, namespace) {
			controllers.EnqueueAt(q, types.NamespacedName{Name: set.Name}, podPause, 0)
		}
	}
}

// matters reports whether a change of a pod may change what its sets do.
func matters(before, after *corev1.Pod) bool {
	if planning.Terminating(before) != planning.Terminating(after) || planning.Finished(before) != planning.Finished(after) ||
		planning.Ready(before) != planning.Ready(after) || before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) {
		return true
	}
	if after.Annotations[v1alpha1.SidecarSetListKey] == "" {
		return false
	}
	return !maps.Equal(before.Annotations, after.Annotations) || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
		!equality.Semantic.DeepEqual(before.Status.ContainerStatuses, after.Status.ContainerStatuses) ||
		!equality.Semantic.DeepEqual(before.Status.InitContainerStatuses, after.Status.InitContainerStatuses)
}

// selects reports whether the set selects the labels of the pod, and its namespace by name. Other labels of
// the namespace are compared when pods are counted.
func (c *Controller) selects(set *v1alpha1.SidecarSet, pod *corev1.Pod) bool {
	force := set.Status.InForce
	if force.Namespace != "" && force.Namespace != pod.Namespace {
		return false
	}
	var selector labels.Selector
	c.states.update(set, func(s *setState) {
		if s.generation != force.Generation || s.selector == nil {
			s.generation, s.uninjected = force.Generation, -1
			var err error
			if s.selector, err = metav1.LabelSelectorAsSelector(force.Selector); err != nil {
				s.selector = labels.Nothing()
			}
		}
		selector = s.selector
	})
	return selector.Matches(labels.Set(pod.Labels))
}

// uninjected returns the number of pods that the set selects and that run without it.
func (c *Controller) uninjected(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) int32 {
	current := set.DeepCopy()
	current.Status = *status
	uninjected := int32(-1)
	c.states.update(set, func(s *setState) {
		if s.generation == status.InForce.Generation && (s.uninjected == 0 || c.Now().Sub(s.counted) < recountPeriod) {
			uninjected = s.uninjected
		}
	})
	if uninjected >= 0 {
		return uninjected
	}
	count, selects := int32(0), c.namespaces(status.InForce)
	for _, pod := range c.scope(status.InForce) {
		if !planning.Active(pod) || !c.selects(current, pod) || slices.Contains(inject.Sets(pod), set.Name) || isExempt(pod) {
			continue
		}
		if selects(pod.Namespace) {
			count++
		}
	}
	c.states.update(set, func(s *setState) { s.uninjected, s.counted = count, c.Now() })
	return count
}

// recount returns when selected pods without the set are counted again.
func (c *Controller) recount(status *v1alpha1.SidecarSetStatus) time.Duration {
	if status.UninjectedPods > 0 {
		return recountPeriod
	}
	return 0
}

// scope returns the pods of the namespaces that the set may select.
func (c *Controller) scope(force *v1alpha1.SidecarSetInForce) []*corev1.Pod {
	names, bound := entries.Named(force.Targets())
	if !bound {
		return reconciler.All[*corev1.Pod](c.Pods)
	}
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, reconciler.Namespaced[*corev1.Pod](c.Pods, name)...)
	}
	return pods
}

// namespaces returns a function that reports whether the set selects a namespace, and decides about each once.
func (c *Controller) namespaces(force *v1alpha1.SidecarSetInForce) func(string) bool {
	selections := map[string]bool{}
	return func(name string) bool {
		selected, found := selections[name]
		if !found {
			selected = c.selectsNamespace(force, name)
			selections[name] = selected
		}
		return selected
	}
}

// maySelectNamespace reports whether the set selects the namespace, or it is not known yet.
func (c *Controller) maySelectNamespace(force *v1alpha1.SidecarSetInForce, name string) bool {
	_, found := stored[*metav1.PartialObjectMetadata](c.Namespaces, name)
	return !found || c.selectsNamespace(force, name)
}

// selectsNamespace reports whether the set selects the namespace.
func (c *Controller) selectsNamespace(force *v1alpha1.SidecarSetInForce, name string) bool {
	namespace, found := stored[*metav1.PartialObjectMetadata](c.Namespaces, name)
	if !found || slices.Contains(c.server().Excluded(), name) {
		return false
	}
	namespaceLabels := maps.Clone(namespace.Labels)
	if namespaceLabels == nil {
		namespaceLabels = map[string]string{}
	}
	namespaceLabels[corev1.LabelMetadataName] = name
	for _, target := range overlap.Namespaces(force.Targets()) {
		if selector, err := metav1.LabelSelectorAsSelector(target); err != nil || !selector.Matches(labels.Set(namespaceLabels)) {
			return false
		}
	}
	return true
}

// isExempt reports whether the pod is the mirror of a static pod, which its node owns, or that of a pull.
func isExempt(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	return owner.Is(controller, corev1.SchemeGroupVersion.WithKind("Node").GroupKind()) || owner.Is(controller, imagepull.Kind().GroupKind())
}
