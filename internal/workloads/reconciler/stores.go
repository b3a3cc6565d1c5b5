// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

// Store is an informer of the cache.
type Store interface {
	// GetIndexer returns the objects.
	GetIndexer() toolscache.Indexer
}

// Stores are the informers that the controllers read from. Their objects must not be modified.
type Stores struct {
	// Sets are the sets of the kind, indexed by namespace.
	Sets Store
	// Pods have ControllerIndexers, Claims have ClaimIndexers, and Revisions have RevisionIndexers.
	Pods, Claims, Revisions Store
	// Markers are the PodProbeMarkers, indexed by namespace, nil if the API server does not serve them.
	Markers Store
	// Budgets are the PodDisruptionBudgets that are guards, indexed by namespace, nil if the program may not list them.
	Budgets Store
	// Nodes are the nodes, trimmed by trim.Node, nil if no kind needs them.
	Nodes Store
	// Pulls are the ImagePullJobs with ControllerIndexers, nil if images are not pulled before updates.
	Pulls Store
}

// The names of the indexes.
const (
	controllerIndex = "controller"
	ownerIndex      = "owner"
	nameIndex       = "name"
)

// orphans is the value in controllerIndex of the objects of a namespace without a controller.
func orphans(namespace string) string { return "orphans of " + namespace }

// byController indexes by the key of the controller.
func byController(object metav1.Object) []string {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return []string{owner.Named(object, controller).String()}
	}
	return []string{orphans(object.GetNamespace())}
}

// byOwner indexes by the keys of all owners.
func byOwner(object metav1.Object) []string {
	var owners []string
	references := object.GetOwnerReferences()
	for i := range references {
		owners = append(owners, owner.Named(object, &references[i]).String())
	}
	return owners
}

// byName indexes by the name up to the last dash.
func byName(object metav1.Object) []string {
	if dash := strings.LastIndexByte(object.GetName(), '-'); dash > 0 {
		return []string{nameKey(object.GetNamespace(), object.GetName()[:dash])}
	}
	return nil
}

func nameKey(namespace, prefix string) string { return namespace + "/" + prefix }

func indexBy(values func(metav1.Object) []string) toolscache.IndexFunc {
	return func(object any) ([]string, error) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, fmt.Errorf("index %T: %w", object, err)
		}
		return values(accessor), nil
	}
}

// ControllerIndexers returns the indexers of objects that are found by their controller, such as pods.
func ControllerIndexers() toolscache.Indexers {
	return toolscache.Indexers{controllerIndex: indexBy(byController)}
}

// RevisionIndexers returns the indexers of the revisions.
func RevisionIndexers() toolscache.Indexers {
	return toolscache.Indexers{controllerIndex: indexBy(byController), nameIndex: indexBy(byName)}
}

// ClaimIndexers returns the indexers of the claims.
func ClaimIndexers() toolscache.Indexers {
	return toolscache.Indexers{ownerIndex: indexBy(byOwner), nameIndex: indexBy(byName)}
}

// Indexed returns the objects with the value in the index. It panics if the store does not have the index:
// without its pods, a set would create others.
func Indexed[T any](store Store, index, value string) []T {
	found, err := store.GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(err)
	}
	return typed[T](found)
}

// typed returns the objects that have the type.
func typed[T any](found []any) []T {
	objects := make([]T, 0, len(found))
	for _, item := range found {
		if object, ok := item.(T); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// get returns the object with the name, or nil. Stores of informers return no errors.
func get(store Store, key types.NamespacedName) client.Object {
	found, _, _ := store.GetIndexer().GetByKey(key.String())
	object, _ := found.(client.Object)
	return object
}

// version returns the resource version of a store.
func version(store Store) string { return store.GetIndexer().LastStoreSyncResourceVersion() }

// All returns the objects of a store.
func All[T any](store Store) []T { return typed[T](store.GetIndexer().List()) }

// Namespaced returns the objects of a namespace.
func Namespaced[T any](store Store, namespace string) []T {
	return Indexed[T](store, namespaceIndex, namespace)
}

// Controlled returns the objects of a store with RevisionIndexers or ControllerIndexers that the owner with the key controls.
func Controlled[T any](store Store, controller owner.Key) []T {
	return Indexed[T](store, controllerIndex, controller.String())
}
