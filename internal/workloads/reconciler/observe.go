// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Observed is what the cache has for a step of a set. It must not be modified.
type Observed struct {
	// Pods are the pods that the set controls, and those without a controller that it selects.
	Pods []*corev1.Pod
	// Claims are the claims that the set owns, and those with names of its claims.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are the revisions that the set controls, those without a controller that it selects,
	// and those of others with names of its revisions.
	Revisions []*appsv1.ControllerRevision
	// Encoder encodes the templates of the set. The planner may use it.
	Encoder *revision.Encoder
	// Nodes are the labels of the pods' nodes by name, if the template spreads pods over topologies.
	Nodes map[string]map[string]string
	// Markers is what is known about the markers that select pods of the set.
	Markers workload.Markers
	// TakenNames are names that pods of others have.
	TakenNames map[string]bool
}

// Observe returns the set and what the cache has for its next step. The set is nil if there is
// nothing to plan: it does not exist, it is being deleted, another program serves it, or the cache
// does not have what was written for it yet, which enqueues it when it does.
func Observe[S client.Object](_ context.Context, b *Base, key types.NamespacedName) (S, *Observed, error) {
	var none S
	// The versions are read first: what is read afterwards is not older.
	cached := b.memory.observe(b.versions)
	object, err := get(b.Stores.Sets, key)
	if err != nil {
		return none, nil, fmt.Errorf("get the set: %w", err)
	}
	set, ok := object.(S)
	if !ok {
		b.memory.forget(key)
		return none, nil, nil
	}
	if set.GetDeletionTimestamp() != nil || !b.Gate.Open() {
		b.memory.rest(key)
		return none, nil, nil
	}
	observed, err := b.gather(set)
	if err != nil {
		return none, nil, err
	}
	if !b.memory.caughtUp(key, set.GetUID(), cached, observed.Pods) {
		b.memory.waited(key, set.GetUID(), len(observed.Pods), b.Now())
		b.Metrics.Waited(b.Kind.Kind)
		return none, nil, nil
	}
	observed.TakenNames, observed.Encoder = b.memory.takenNames(key, set.GetUID()), b.memory.encoder(key, set.GetUID())
	b.memory.planned(key, set.GetUID(), set.GetGeneration(), len(observed.Pods), b.Now())
	return set, observed, nil
}

func (b *Base) versions() versions {
	return versions{
		set: version(b.Stores.Sets), pods: version(b.Stores.Pods),
		claims: version(b.Stores.Claims), revisions: version(b.Stores.Revisions),
	}
}

// gather reads what belongs to the set.
func (b *Base) gather(set client.Object) (*Observed, error) {
	parts := b.Parts(set)
	selector, err := metav1.LabelSelectorAsSelector(parts.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	if selector.Empty() {
		return nil, errors.New("spec.selector: must not be empty")
	}
	observed := &Observed{}
	if observed.Pods, err = selected[*corev1.Pod](b.Stores.Pods, set, selector); err != nil {
		return nil, err
	}
	if observed.Revisions, err = b.revisions(set, selector); err != nil {
		return nil, err
	}
	if observed.Claims, err = b.claims(set, parts.Claims); err != nil {
		return nil, err
	}
	if observed.Markers, err = b.markers(set.GetNamespace(), parts.Template, observed.Pods); err != nil {
		return nil, err
	}
	if b.Stores.Nodes != nil && len(parts.Template.Spec.TopologySpreadConstraints) > 0 {
		observed.Nodes, err = b.nodes(observed.Pods)
	}
	return observed, err
}

// selected returns the objects that the set controls, and those without a controller that the
// selector matches, by name.
func selected[T client.Object](store Store, set client.Object, selector labels.Selector) ([]T, error) {
	own, err := list[T](store, controllerIndex, string(set.GetUID()))
	if err != nil {
		return nil, err
	}
	free, err := list[T](store, controllerIndex, orphans(set.GetNamespace()))
	if err != nil {
		return nil, err
	}
	for _, each := range free {
		if selector.Matches(labels.Set(each.GetLabels())) {
			own = append(own, each)
		}
	}
	return own, nil
}

func (b *Base) revisions(set client.Object, selector labels.Selector) ([]*appsv1.ControllerRevision, error) {
	found, err := selected[*appsv1.ControllerRevision](b.Stores.Revisions, set, selector)
	if err != nil {
		return nil, err
	}
	alike, err := list[*appsv1.ControllerRevision](b.Stores.Revisions, nameIndex, nameKey(set.GetNamespace(), set.GetName()))
	return union(found, alike), err
}

func (b *Base) claims(set client.Object, templates []corev1.PersistentVolumeClaim) ([]*corev1.PersistentVolumeClaim, error) {
	found, err := list[*corev1.PersistentVolumeClaim](b.Stores.Claims, ownerIndex, string(set.GetUID()))
	if err != nil {
		return nil, err
	}
	for i := range templates {
		prefix := nameKey(set.GetNamespace(), templates[i].Name+"-"+set.GetName())
		alike, err := list[*corev1.PersistentVolumeClaim](b.Stores.Claims, nameIndex, prefix)
		if err != nil {
			return nil, err
		}
		found = union(found, alike)
	}
	return found, nil
}

// union adds those of more that are not in all.
func union[T comparable](all, more []T) []T {
	if len(all) == 0 {
		return more
	}
	known := sets.New(all...)
	return append(all, slices.DeleteFunc(more, known.Has)...)
}

// markers returns what is known about the markers that select pods with the labels of the template,
// or one of the pods: controllers add labels that the template does not have.
func (b *Base) markers(namespace string, template *corev1.PodTemplateSpec, pods []*corev1.Pod) (workload.Markers, error) {
	known := workload.Markers{}
	if b.Stores.Markers == nil {
		return known, nil
	}
	markers, err := list[*v1alpha1.PodProbeMarker](b.Stores.Markers, namespaceIndex, namespace)
	if err != nil {
		return known, err
	}
	samples := []labels.Set{template.Labels}
	if len(pods) > 0 {
		samples = append(samples, pods[0].Labels)
	}
	for _, marker := range markers {
		if Selects(marker, samples...) {
			known.Labels, known.Conditions = addMarks(marker, known.Labels, known.Conditions)
		}
	}
	return known, nil
}

// Selects reports whether the marker selects pods with one of the labels.
func Selects(marker *v1alpha1.PodProbeMarker, samples ...labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil || selector.Empty() {
		return false
	}
	return slices.ContainsFunc(samples, func(sample labels.Set) bool { return selector.Matches(sample) })
}

func addMarks(
	marker *v1alpha1.PodProbeMarker, keys sets.Set[string], conditions sets.Set[corev1.PodConditionType],
) (sets.Set[string], sets.Set[corev1.PodConditionType]) {
	if keys == nil {
		keys, conditions = sets.New[string](), sets.New[corev1.PodConditionType]()
	}
	for i := range marker.Spec.Probes {
		probe := &marker.Spec.Probes[i]
		for _, policy := range probe.MarkerPolicy {
			for key := range policy.Labels {
				keys.Insert(key)
			}
		}
		if probe.PodConditionType != "" {
			conditions.Insert(corev1.PodConditionType(probe.PodConditionType))
		}
	}
	return keys, conditions
}

// nodes returns the labels of the nodes of the pods.
func (b *Base) nodes(pods []*corev1.Pod) (map[string]map[string]string, error) {
	found := make(map[string]map[string]string)
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, known := found[name]; known || name == "" {
			continue
		}
		node, err := get(b.Stores.Nodes, types.NamespacedName{Name: name})
		if err != nil {
			return nil, fmt.Errorf("get node %s: %w", name, err)
		}
		if node != nil {
			found[name] = node.GetLabels()
		}
	}
	return found, nil
}
