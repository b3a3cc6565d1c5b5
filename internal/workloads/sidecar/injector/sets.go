// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// namespaceIndex is the index of the sets by the namespaces that they are bound to.
const namespaceIndex = "bound"

const (
	// liveRate and liveBurst limit the reads that the cache cannot answer, per second: anyone who reaches the
	// port can ask for sets that do not exist.
	liveRate  = 20
	liveBurst = 100
)

// indexers returns the indexers of the sets.
func indexers() toolscache.Indexers {
	return toolscache.Indexers{namespaceIndex: func(object any) ([]string, error) {
		set, ok := object.(*v1alpha1.SidecarSet)
		if !ok || set.Status.InForce == nil {
			return nil, nil
		}
		names, _ := entries.Named(set.Status.InForce.Targets())
		return names, nil
	}}
}

// memory has the last acceptance of each set, also while the status does not have it: OpenKruise's client drops
// fields that it does not know when it writes the status, and the controller writes them again.
type memory struct {
	mu       sync.Mutex
	accepted map[types.UID]*v1alpha1.SidecarSetInForce
}

func newMemory() *memory { return &memory{accepted: map[types.UID]*v1alpha1.SidecarSetInForce{}} }

// latest returns the last acceptance of the set, or nil.
func (m *memory) latest(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSetInForce {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set.Status.InForce != nil {
		m.accepted[set.UID] = set.Status.InForce
	}
	return m.accepted[set.UID]
}

// forget is called with a set that is gone.
func (m *memory) forget(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if set, ok := object.(*v1alpha1.SidecarSet); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.accepted, set.UID)
	}
}

// trim drops what the injector does not read: containers are in the revisions.
func (m *memory) trim(object any) (any, error) {
	set, ok := object.(*v1alpha1.SidecarSet)
	if !ok {
		return object, nil
	}
	return &v1alpha1.SidecarSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion, DeletionTimestamp: set.DeletionTimestamp,
			Annotations: map[string]string{v1alpha1.InjectionFailurePolicyKey: set.Annotations[v1alpha1.InjectionFailurePolicyKey]},
		},
		Spec: v1alpha1.SidecarSetSpec{
			InjectionStrategy: v1alpha1.SidecarSetInjectionStrategy{Paused: entries.Paused(set)},
			UpdateStrategy: v1alpha1.SidecarSetUpdateStrategy{
				Paused: set.Spec.UpdateStrategy.Paused, Selector: set.Spec.UpdateStrategy.Selector, Partition: set.Spec.UpdateStrategy.Partition,
			},
		},
		Status: v1alpha1.SidecarSetStatus{
			MatchedPods: set.Status.MatchedPods, InForce: m.latest(set),
		},
	}, nil
}

// store is an informer of the cache.
type store interface {
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
}

// accepted are the sets and revisions of the API server. It implements Sets.
type accepted struct {
	sets store
	// revisions reads revisions from the cache, and live what the cache does not have yet.
	revisions, live client.Reader
	// namespace is that of the revisions.
	namespace string
	limiter   *rate.Limiter
}

func newAccepted(sets store, revisions, live client.Reader, namespace string) *accepted {
	return &accepted{sets: sets, revisions: revisions, live: live, namespace: namespace, limiter: rate.NewLimiter(liveRate, liveBurst)}
}

// Choose implements Sets.
func (a *accepted) Choose(ctx context.Context, name string, pod *corev1.Pod, request types.UID) (Choice, error) {
	set, err := a.set(ctx, name)
	switch {
	case err != nil || set == nil:
		return Choice{}, err
	case set.Status.InForce == nil && set.DeletionTimestamp == nil && !set.Spec.InjectionStrategy.Paused:
		// API servers ask only for sets that were accepted.
		return Choice{}, errors.New("it is not accepted yet, or not again")
	case set.Status.InForce == nil:
		return Choice{}, nil
	}
	force := set.Status.InForce
	// API servers may still have an older entry.
	selector, err := metav1.LabelSelectorAsSelector(force.Selector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return Choice{}, err
	}
	if !entries.Injects(set) {
		return Choice{Selects: true}, nil
	}
	optional := set.Annotations[v1alpha1.InjectionFailurePolicyKey] == "Ignore"
	if force.Refused != "" {
		return Choice{Selects: true, Refused: force.Refused, Optional: optional}, nil
	}
	wanted := force.Revision
	if force.NamedRevision != "" {
		strategy := set.Spec.DeepCopy()
		strategy.InjectionStrategy.Revision = &v1alpha1.SidecarSetInjectRevision{Policy: force.Policy}
		named, err := inject.GetsNamed(strategy, pod.Labels, request, set.Status.MatchedPods)
		if err != nil {
			return Choice{}, fmt.Errorf("choose a revision: %w", err)
		}
		if named {
			wanted = force.NamedRevision
		}
	}
	revision, err := a.revision(ctx, set, wanted)
	return Choice{Selects: true, Revision: revision, Optional: optional}, err
}

// Bound implements Sets.
func (a *accepted) Bound(namespace string) []string {
	found, _ := a.sets.GetIndexer().IndexKeys(namespaceIndex, namespace)
	return found
}

// Known implements Sets.
func (a *accepted) Known(ctx context.Context, set, name string) *inject.Revision {
	stored := &appsv1.ControllerRevision{}
	err := a.revisions.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, stored)
	if err != nil || stored.Labels[history.SetLabel] != set {
		return nil
	}
	parsed, err := history.Parse(stored)
	if err != nil {
		return nil
	}
	return parsed
}

// set returns the set, or nil if it does not exist.
func (a *accepted) set(ctx context.Context, name string) (*v1alpha1.SidecarSet, error) {
	found, _, _ := a.sets.GetIndexer().GetByKey(name)
	if set, ok := found.(*v1alpha1.SidecarSet); ok && set.Status.InForce != nil {
		return set, nil
	}
	set := &v1alpha1.SidecarSet{}
	switch err := a.read(ctx, types.NamespacedName{Name: name}, set); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // The set does not exist.
	case err != nil:
		return nil, err
	default:
		return set, nil
	}
}

// revision returns a revision of the set.
func (a *accepted) revision(ctx context.Context, set *v1alpha1.SidecarSet, name string) (*inject.Revision, error) {
	key := types.NamespacedName{Namespace: a.namespace, Name: name}
	stored := &appsv1.ControllerRevision{}
	if err := a.revisions.Get(ctx, key, stored); err != nil {
		if err := a.read(ctx, key, stored); err != nil {
			return nil, err
		}
	}
	if !history.Key(set, a.namespace).Controls(stored) {
		return nil, fmt.Errorf("ControllerRevision %s belongs to another object", key)
	}
	return history.Parse(stored)
}

// read reads an object that the cache does not have.
func (a *accepted) read(ctx context.Context, key types.NamespacedName, object client.Object) error {
	if err := a.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the limit of reads: %w", err)
	}
	if err := a.live.Get(ctx, key, object); err != nil {
		return fmt.Errorf("get %T %s: %w", object, key, err)
	}
	return nil
}
