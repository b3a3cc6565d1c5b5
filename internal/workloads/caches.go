// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// newNode returns an empty node, of which only the metadata is cached.
func newNode() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return node
}

// caches returns the options of the cache, which keeps only the fields that planners read. Readers
// share the cached objects without a copy, because no planner changes what it reads. Claims are kept
// whole, because planners update them as a whole.
func caches(kinds []schema.GroupKind) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                {Transform: trimmer(trimPod(kinds))},
			&appsv1.ControllerRevision{}: {Transform: trimmer(trimRevision(kinds))},
			newNode():                    {Transform: trimmer(trimNode)},
		},
	}
}

// newStores creates the informers that all kinds share, so that the process is ready only when they
// are synced.
func newStores(ctx context.Context, informers cache.Cache, withMarkers, withNodes bool) (workload.Stores, error) {
	var stores workload.Stores
	for _, each := range []struct {
		object  client.Object
		store   *workload.Store
		index   toolscache.Indexers
		skipped bool
	}{
		{object: &corev1.Pod{}, store: &stores.Pods, index: workload.PodIndexers()},
		{object: &corev1.PersistentVolumeClaim{}, store: &stores.Claims, index: workload.ClaimIndexers()},
		{object: &appsv1.ControllerRevision{}, store: &stores.Revisions, index: workload.RevisionIndexers()},
		{object: &v1alpha1.PodProbeMarker{}, store: &stores.Markers, skipped: !withMarkers},
		{object: newNode(), store: &stores.Nodes, skipped: !withNodes},
	} {
		if each.skipped {
			continue
		}
		store, err := newStore(ctx, informers, each.object, each.index)
		if err != nil {
			return stores, err
		}
		*each.store = store
	}
	return stores, nil
}

// newStore creates an informer with the index.
func newStore(ctx context.Context, informers cache.Cache, object client.Object, index toolscache.Indexers) (workload.Store, error) {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("create the informer of %T: %w", object, err)
	}
	if err := informer.AddIndexers(index); err != nil {
		return nil, fmt.Errorf("index %T: %w", object, err)
	}
	store, ok := informer.(workload.Store)
	if !ok {
		return nil, fmt.Errorf("informer %T of %T has no indexer", informer, object)
	}
	return store, nil
}
