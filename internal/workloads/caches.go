// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// newNamespace returns an empty namespace, of which only the metadata is cached.
func newNamespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// caches returns the options of the cache, which keeps only the fields that planners read. Readers
// share the cached objects without a copy, because no planner changes what it reads. Claims are kept
// whole, because planners update them as a whole.
func caches(kinds []schema.GroupKind, sidecarSets, imagePulls bool) cache.Options {
	trimPod, trimNode := trim.Pod(kinds), trim.Node
	if sidecarSets {
		trimPod = trim.PodWithSidecars(kinds)
	}
	if imagePulls {
		trimPod, trimNode = trim.PodWithPulls(trimPod), trim.NodeWithImages
	}
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                {Transform: trim.Func(trim.PodWithBroadcasts(trimPod))},
			&appsv1.ControllerRevision{}: {Transform: trim.Func(trim.Revision(kinds))},
			&corev1.Node{}:               {Transform: trim.Func(trimNode)},
			newNamespace():               {Transform: trim.Func(trim.Namespace)},
			&batchv1.Job{}:               {Transform: trim.Func(trim.Job)},
			&policyv1.PodDisruptionBudget{}: {
				Label: guard.Labels().AsSelector(), Transform: trim.Func(guard.Trim),
			},
			&rbacv1.RoleBinding{}: {Label: labels.SelectorFromSet(labels.Set{grants.Label: grants.LabelValue})},
		},
	}
}

// mapCache caches one ConfigMap. A cache has one selector for a kind, and the role of the program permits to read
// each ConfigMap by name.
type mapCache struct{ cache.Cache }

// GetCache makes the manager start it with its own cache, before the controllers.
func (c mapCache) GetCache() cache.Cache { return c.Cache }

// addMapCache adds a cache of the ConfigMap to the manager.
func addMapCache(ctx context.Context, mgr ctrlmanager.Manager, namespace, name string) (cache.Cache, error) {
	created, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of ConfigMap %s: %w", name, err)
	}
	if _, err := created.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("create the informer of ConfigMap %s: %w", name, err)
	}
	if err := mgr.Add(mapCache{created}); err != nil {
		return nil, fmt.Errorf("add the cache of ConfigMap %s: %w", name, err)
	}
	return created, nil
}

// newStores creates the informers that all kinds share, so that the process is ready only when they
// are synced.
func newStores(ctx context.Context, mgr ctrlmanager.Manager, withMarkers, withNodes bool) (reconciler.Stores, error) {
	var stores reconciler.Stores
	for _, informer := range []struct {
		object  client.Object
		store   *reconciler.Store
		index   toolscache.Indexers
		skipped bool
	}{
		{object: &corev1.Pod{}, store: &stores.Pods, index: reconciler.ControllerIndexers()},
		{object: &corev1.PersistentVolumeClaim{}, store: &stores.Claims, index: reconciler.ClaimIndexers()},
		{object: &appsv1.ControllerRevision{}, store: &stores.Revisions, index: reconciler.RevisionIndexers()},
		{object: &policyv1.PodDisruptionBudget{}, store: &stores.Budgets, skipped: !startup.MayList(ctx, mgr, &policyv1.PodDisruptionBudgetList{})},
		{object: &v1alpha1.PodProbeMarker{}, store: &stores.Markers, skipped: !withMarkers},
		{object: &corev1.Node{}, store: &stores.Nodes, skipped: !withNodes},
	} {
		if informer.skipped {
			continue
		}
		store, err := startup.NewStore(ctx, mgr.GetCache(), informer.object, informer.index)
		if err != nil {
			return stores, err
		}
		*informer.store = store
	}
	return stores, nil
}
