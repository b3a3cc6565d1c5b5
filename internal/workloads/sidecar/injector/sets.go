// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

const (
	// namespaceIndex is the index of the sets by the namespaces that they are bound to.
	namespaceIndex = "bound"
	// keptRevisions is the number of parsed revisions that are kept, about as many as sets with an entry of their own.
	keptRevisions = 256
)

// parsedKey identifies a version of a revision.
type parsedKey struct {
	name    string
	uid     types.UID
	version string
}

// indexers returns the indexers of the sets.
func indexers() toolscache.Indexers {
	return toolscache.Indexers{namespaceIndex: func(object any) ([]string, error) {
		set, ok := object.(*v1alpha1.SidecarSet)
		if !ok || set.Status.InForce == nil && set.Spec.Selector == nil {
			return nil, nil
		}
		names, _ := entries.Named(targets(set))
		return names, nil
	}}
}

// acceptances have the last acceptance of each set, also while the status does not have it: OpenKruise's client drops
// fields that it does not know when it writes the status, and the controller writes them again.
type acceptances struct {
	inForce keyed.Store[types.UID, *v1alpha1.SidecarSetInForce]
}

// latest returns the last acceptance of the set, or nil.
func (a *acceptances) latest(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSetInForce {
	if !entries.IsUnknown(set) {
		a.inForce.Set(set.UID, set.Status.InForce)
		return set.Status.InForce
	}
	force, _ := a.inForce.Get(set.UID)
	return force
}

// forget is called with a set that is gone.
func (a *acceptances) forget(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if set, ok := object.(*v1alpha1.SidecarSet); ok {
		a.inForce.Forget(set.UID)
	}
}

// trim drops what the injector does not read: containers are in the revisions. It keeps what the specification selects
// only if it is not known what was accepted.
func (a *acceptances) trim(object any) (any, error) {
	set, ok := object.(*v1alpha1.SidecarSet)
	if !ok {
		return object, nil
	}
	kept := &v1alpha1.SidecarSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion, DeletionTimestamp: set.DeletionTimestamp,
			Annotations: map[string]string{v1alpha1.InjectionFailurePolicyKey: set.Annotations[v1alpha1.InjectionFailurePolicyKey]},
		},
		Spec: v1alpha1.SidecarSetSpec{
			InjectionStrategy: v1alpha1.SidecarSetInjectionStrategy{Paused: entries.Paused(set)},
			UpdateStrategy: v1alpha1.SidecarSetUpdateStrategy{
				Paused: keepsNamed(set), Selector: set.Spec.UpdateStrategy.Selector, Partition: set.Spec.UpdateStrategy.Partition,
			},
		},
		Status: v1alpha1.SidecarSetStatus{
			MatchedPods: set.Status.MatchedPods, InForce: a.latest(set),
		},
	}
	if kept.Status.InForce == nil && entries.IsUnknown(set) && !isNew(set) {
		kept.Spec.Selector, kept.Spec.Namespace, kept.Spec.NamespaceSelector = set.Spec.Selector, set.Spec.Namespace, set.Spec.NamespaceSelector
	}
	return kept, nil
}

// store is an informer of the cache.
type store interface {
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
}

// accepted are the sets and revisions of the API server. It implements Sets.
type accepted struct {
	sets store
	// revisions reads revisions from the cache, and live what the cache does not have yet. parsed are the last ones
	// that were parsed.
	revisions client.Reader
	live      *live
	parsed    *lru.Cache
	// namespace is that of the revisions.
	namespace string
}

func newAccepted(sets store, revisions, live client.Reader, namespace string) *accepted {
	return &accepted{sets: sets, revisions: revisions, live: newLive(live), parsed: lru.New(keptRevisions), namespace: namespace}
}

// parse returns what the revision injects. Callers share it.
func (a *accepted) parse(stored *appsv1.ControllerRevision) (*inject.Revision, error) {
	key := parsedKey{name: stored.Name, uid: stored.UID, version: stored.ResourceVersion}
	if parsed, found := a.parsed.Get(key); found {
		if revision, ok := parsed.(*inject.Revision); ok {
			return revision, nil
		}
	}
	revision, err := history.Parse(stored)
	if err == nil {
		a.parsed.Add(key, revision)
	}
	return revision, err
}

// Choose implements Sets.
func (a *accepted) Choose(ctx context.Context, name string, pod *corev1.Pod, request types.UID) (Choice, error) {
	if set := a.cached(name); set != nil && set.Status.InForce != nil {
		if choice, err := a.choose(ctx, set, pod, request); err != nil || choice.decides() {
			return choice, err
		}
	}
	// An entry selects the pod: the cache may be older than the entry, or the entry older than the set. A set whose
	// injection is paused, or that is deleted, has no entry.
	set, err := a.live.set(ctx, name)
	switch {
	case err != nil || set == nil:
		return Choice{Set: name}, err
	case entries.IsUndecided(set):
		return Choice{Set: name}, undecided(set)
	default:
		return a.choose(ctx, set, pod, request)
	}
}

// ChooseBound implements Sets. If the cache has not reached the version, the entry may have been written for a set that it
// lacks, also if it has others.
func (a *accepted) ChooseBound(ctx context.Context, pod *corev1.Pod, request types.UID, version string) ([]Choice, error) {
	var choices []Choice
	add := func(set *v1alpha1.SidecarSet) error {
		choice, err := a.choose(ctx, set, pod, request)
		if choice.Selects {
			choices = append(choices, choice)
		}
		return err
	}
	if !a.isBehind(version) {
		names, _ := a.sets.GetIndexer().IndexKeys(namespaceIndex, pod.Namespace)
		slices.Sort(names)
		for _, name := range names {
			if set := a.cached(name); set != nil {
				if err := add(set); err != nil {
					return nil, err
				}
			}
		}
	}
	if slices.ContainsFunc(choices, Choice.decides) {
		return choices, nil
	}
	// As in Choose, but the entry does not name its set.
	choices = nil
	sets, err := a.live.bound(ctx, pod.Namespace)
	if err != nil {
		return nil, err
	}
	var pending error
	for _, set := range sets {
		err := add(set)
		switch {
		case err != nil && !isNew(set):
			return nil, err
		case err != nil:
			pending = err
		}
	}
	if !slices.ContainsFunc(choices, Choice.decides) {
		return choices, pending
	}
	// A new set is not in the entry.
	return choices, nil
}

// isBehind reports whether the cache has not reached the resource version. A cache that does not know its version is
// behind: client-go's feature gate AtomicFIFO is off.
func (a *accepted) isBehind(version string) bool {
	cached := a.sets.GetIndexer().LastStoreSyncResourceVersion()
	return version != "" && (cached == "" || objectversion.Older(cached, version))
}

// undecided returns the error for a set that OpenKruise has written, whose client drops what was accepted, or that was
// created again.
func undecided(set *v1alpha1.SidecarSet) error {
	return fmt.Errorf("SidecarSet %s is not accepted yet, or not again", set.Name)
}

// targets returns what the set selects.
func targets(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSetSpec {
	if set.Status.InForce == nil {
		return &set.Spec
	}
	return set.Status.InForce.Targets()
}

// choose returns what the set injects into the pod.
func (a *accepted) choose(ctx context.Context, set *v1alpha1.SidecarSet, pod *corev1.Pod, request types.UID) (Choice, error) {
	none, force := Choice{Set: set.Name}, set.Status.InForce
	selector, err := metav1.LabelSelectorAsSelector(targets(set).Selector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return none, err
	}
	chosen := Choice{Set: set.Name, Selects: true}
	switch {
	case entries.IsUndecided(set):
		return none, undecided(set)
	case force == nil:
		return none, nil
	case !entries.Injects(set):
		return chosen, nil
	}
	chosen.Optional = set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore"
	if force.Refused != "" {
		chosen.Refused = force.Refused
		return chosen, nil
	}
	wanted, err := wantedRevision(set, pod, request)
	if err != nil {
		return none, fmt.Errorf("choose a revision of SidecarSet %s: %w", set.Name, err)
	}
	if chosen.Revision, err = a.revision(ctx, set, wanted); err != nil {
		return none, fmt.Errorf("find the revision of SidecarSet %s: %w", set.Name, err)
	}
	return chosen, nil
}

// wantedRevision returns the name of the revision that the pod gets. API servers call the injectors again for a pod, with another UID:
// what an earlier call has chosen is in the annotations.
func wantedRevision(set *v1alpha1.SidecarSet, pod *corev1.Pod, request types.UID) (string, error) {
	force := set.Status.InForce
	if force.NamedRevision == "" {
		return force.Revision, nil
	}
	if force.Policy == v1alpha1.PartialSidecarSetInjectRevisionPolicy && slices.Contains(inject.Sets(pod), set.Name) {
		if has := inject.Of(pod, set.Name).Revision; has == force.Revision || has == force.NamedRevision {
			return has, nil
		}
	}
	strategy := set.Spec.DeepCopy()
	strategy.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{Policy: force.Policy}
	named, err := inject.GetsNamed(strategy, pod.Labels, request, set.Status.MatchedPods)
	if named {
		return force.NamedRevision, err //nolint:wrapcheck // choose describes it.
	}
	return force.Revision, err //nolint:wrapcheck // choose describes it.
}

// Known implements Sets.
func (a *accepted) Known(ctx context.Context, set, name string) *inject.Revision {
	stored := &appsv1.ControllerRevision{}
	err := a.revisions.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, stored)
	if err != nil || stored.Labels[history.SetLabel] != set {
		return nil
	}
	parsed, err := a.parse(stored)
	if err != nil {
		return nil
	}
	return parsed
}

// cached returns the set of the cache, or nil.
func (a *accepted) cached(name string) *v1alpha1.SidecarSet {
	found, _, _ := a.sets.GetIndexer().GetByKey(name)
	set, _ := found.(*v1alpha1.SidecarSet)
	return set
}

// revision returns a revision of the set.
func (a *accepted) revision(ctx context.Context, set *v1alpha1.SidecarSet, name string) (*inject.Revision, error) {
	key := types.NamespacedName{Namespace: a.namespace, Name: name}
	stored := &appsv1.ControllerRevision{}
	if err := a.revisions.Get(ctx, key, stored); err != nil {
		if err := a.live.get(ctx, key, stored); err != nil {
			return nil, err
		}
	}
	if !history.Key(set, a.namespace).Controls(stored) {
		return nil, fmt.Errorf("ControllerRevision %s belongs to another object", key)
	}
	return a.parse(stored)
}
