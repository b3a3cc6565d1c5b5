// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// observe returns the set and what the cache has for its next step. The set is nil if there is
// nothing to plan: it does not exist, it is being deleted, another program serves it, or the cache
// does not have what was written for it yet, which enqueues it when it does.
func (b *base) observe(key types.NamespacedName) (client.Object, *planning.Input, error) {
	// The versions are read first: what is read afterwards is not older.
	cached := b.expectations.observe(b.versions)
	set := get(b.Stores.Sets, key)
	if set == nil {
		b.expectations.forget(key)
		if b.slots != nil {
			b.slots.Forget(key)
		}
		return nil, nil, nil
	}
	b.expectations.leads(!b.Pause.Active(), b.Now())
	if set.GetDeletionTimestamp() != nil || b.Pause.Active() {
		b.expectations.updateExisting(key, func(e *expectations) { e.waiting = false })
		return nil, nil, nil
	}
	in, err := b.gather(set)
	if err != nil {
		return nil, nil, err
	}
	in.Now = b.Now()
	caughtUp, size, unseen := false, len(in.Pods), unseenOf(in.Pods)
	if b.slots != nil {
		size = b.slots.Size(set.GetUID())
		unseen = func(deleted map[types.UID]bool) map[types.UID]bool { return b.slots.Unseen(set.GetUID(), deleted) }
	}
	b.expect(set, func(e *expectations) {
		if caughtUp = e.caughtUp(cached, unseen); caughtUp {
			e.plans(set.GetGeneration(), size, in.Now)
			in.TakenNames, in.Encoder = e.taken, &e.encoder
		} else {
			e.waits(size, in.Now)
		}
	})
	if !caughtUp {
		b.Metrics.Waited(b.kind.Kind)
		return nil, nil, nil
	}
	return set, in, nil
}

func (b *base) versions() versions {
	found := versions{
		set: version(b.Stores.Sets), pods: version(b.Stores.Pods),
		claims: version(b.Stores.Claims), revisions: version(b.Stores.Revisions),
	}
	if b.slots != nil {
		if followed := b.slots.Version(); objectversion.Older(followed, found.pods) {
			found.pods = followed // Events follow the store.
		}
	}
	return found
}

// unseenOf returns a function that returns which deleted pods are among the pods and do not terminate.
func unseenOf(pods []*corev1.Pod) func(map[types.UID]bool) map[types.UID]bool {
	return func(deleted map[types.UID]bool) map[types.UID]bool {
		unseen := make(map[types.UID]bool)
		for _, pod := range pods {
			if deleted[pod.UID] && !planning.Terminating(pod) {
				unseen[pod.UID] = true
			}
		}
		return unseen
	}
}

// gather reads what belongs to the set. The result must not be modified.
func (b *base) gather(set client.Object) (*planning.Input, error) {
	parts := b.parts(set)
	selector, err := metav1.LabelSelectorAsSelector(parts.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	if selector.Empty() {
		return nil, errors.New("spec.selector: must not be empty")
	}
	in := &planning.Input{
		Revisions: union(selected[*appsv1.ControllerRevision](b, b.Stores.Revisions, set, selector),
			Indexed[*appsv1.ControllerRevision](b.Stores.Revisions, nameIndex, nameKey(set.GetNamespace(), set.GetName()))),
	}
	in.Claims = b.claims(set, revision.AllClaims(in.Revisions, parts.Claims))
	if b.slots == nil {
		in.Pods = selected[*corev1.Pod](b, b.Stores.Pods, set, selector)
	} else {
		in.Pods = matching[*corev1.Pod](b.Stores.Pods, set, selector)
	}
	if in.PreDownload = b.Stores.Pulls != nil; in.PreDownload {
		in.Pulls = Controlled[*v1alpha1.ImagePullJob](b.Stores.Pulls, owner.Of(b.kind, set))
	}
	in.Guards = Guards(b.Stores.Budgets, set.GetNamespace())
	in.Markers = b.markers(set.GetNamespace(), parts.Template, in.Pods)
	if b.Stores.Nodes != nil && len(parts.Template.Spec.TopologySpreadConstraints) > 0 {
		in.Nodes = b.nodes(in.Pods)
	}
	return in, nil
}

// Guards returns the guards of a namespace. The store may be nil.
func Guards(budgets Store, namespace string) guard.Guards {
	if budgets == nil {
		return nil
	}
	return guard.New(Namespaced[*policyv1.PodDisruptionBudget](budgets, namespace))
}

// selected returns the objects that the set controls, and those without a controller that the
// selector matches, by name.
func selected[T client.Object](b *base, store Store, set client.Object, selector labels.Selector) []T {
	return append(Controlled[T](store, owner.Of(b.kind, set)), matching[T](store, set, selector)...)
}

// matching returns the objects without a controller that the selector matches.
func matching[T client.Object](store Store, set client.Object, selector labels.Selector) []T {
	return slices.DeleteFunc(Indexed[T](store, controllerIndex, orphans(set.GetNamespace())), func(each T) bool {
		return !selector.Matches(labels.Set(each.GetLabels()))
	})
}

func (b *base) claims(set client.Object, templates []corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	found := Indexed[*corev1.PersistentVolumeClaim](b.Stores.Claims, ownerIndex, owner.Of(b.kind, set).String())
	for i := range templates {
		prefix := nameKey(set.GetNamespace(), templates[i].Name+"-"+set.GetName())
		found = union(found, Indexed[*corev1.PersistentVolumeClaim](b.Stores.Claims, nameIndex, prefix))
	}
	return found
}

// union adds those of more that are not in all.
func union[T comparable](all, more []T) []T {
	if len(all) == 0 {
		return more
	}
	present := sets.New(all...)
	return append(all, slices.DeleteFunc(more, present.Has)...)
}

// markers returns what is known about the markers that select pods with the labels of the template,
// or one of the pods: controllers add labels that the template does not have.
func (b *base) markers(namespace string, template *corev1.PodTemplateSpec, pods []*corev1.Pod) planning.Markers {
	markers := planning.Markers{Labels: sets.New[string](), Conditions: sets.New[corev1.PodConditionType]()}
	if b.Stores.Markers == nil {
		return markers
	}
	samples := []labels.Set{template.Labels}
	if len(pods) > 0 {
		samples = append(samples, pods[0].Labels)
	}
	for _, marker := range Indexed[*v1alpha1.PodProbeMarker](b.Stores.Markers, namespaceIndex, namespace) {
		if !Selects(marker, samples...) {
			continue
		}
		for i := range marker.Spec.Probes {
			probe := &marker.Spec.Probes[i]
			for j := range probe.MarkerPolicy {
				markers.Labels.Insert(probe.MarkerPolicy[j].LabelKeys()...)
			}
			if probe.PodConditionType != "" {
				markers.Conditions.Insert(corev1.PodConditionType(probe.PodConditionType))
			}
		}
	}
	return markers
}

// Selects reports whether the marker selects pods with one of the labels.
func Selects(marker *v1alpha1.PodProbeMarker, samples ...labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil || selector.Empty() {
		return false
	}
	return slices.ContainsFunc(samples, func(sample labels.Set) bool { return selector.Matches(sample) })
}

func (b *base) nodes(pods []*corev1.Pod) map[string]map[string]string {
	found := make(map[string]map[string]string)
	for _, pod := range pods {
		name := pod.Spec.NodeName
		if _, known := found[name]; known || name == "" {
			continue
		}
		if node := get(b.Stores.Nodes, types.NamespacedName{Name: name}); node != nil {
			found[name] = node.GetLabels()
		}
	}
	return found
}
