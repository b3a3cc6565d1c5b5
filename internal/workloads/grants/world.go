// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/startup"
)

// writers are the kinds whose pods seamark-workloads writes. AdvancedCronJobs are not among them: they create Jobs.
func writers() []kinds.Kind {
	return slices.DeleteFunc(kinds.Table(), func(k kinds.Kind) bool { return !k.CreatesPods() && k.Role != kinds.Injector })
}

// newClient returns a client of RoleBindings, and of the metadata of sets and namespaces. It needs no discovery.
func newClient(config *rest.Config) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(kind schema.GroupVersionKind, resource string, scope meta.RESTScope) {
		plural := kind.GroupVersion().WithResource(resource)
		mapper.AddSpecific(kind, plural, plural, scope)
	}
	for _, kind := range writers() {
		if kind.ClusterScoped {
			add(kind.GroupVersionKind, kind.Resource, meta.RESTScopeRoot)
		} else {
			add(kind.GroupVersionKind, kind.Resource, meta.RESTScopeNamespace)
		}
	}
	add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), "rolebindings", meta.RESTScopeNamespace)
	add(corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", meta.RESTScopeRoot)
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("create the scheme: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	connection, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("create the client of rolebindings: %w", err)
	}
	return connection, nil
}

// world is what a Granter watches.
type world struct {
	bindings toolscache.SharedIndexInformer
	// sets are the informers of the kinds of namespaced sets. sidecars and namespaces are nil without SidecarSets.
	sets                 []toolscache.SharedIndexInformer
	sidecars, namespaces toolscache.SharedIndexInformer
}

// newWorld returns a world that calls changed with the namespaces for which something has changed.
func newWorld(connection client.WithWatch, resources []string, changed func(namespace string)) (*world, error) {
	w := &world{}
	var errs []error
	watched := func(
		kind schema.GroupVersionKind, object client.Object, list client.ObjectList, trim toolscache.TransformFunc, events toolscache.ResourceEventHandler,
		options ...client.ListOption,
	) toolscache.SharedIndexInformer {
		object.GetObjectKind().SetGroupVersionKind(kind)
		list.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		informer := newInformer(connection, object, list, options...)
		_, err := informer.AddEventHandler(events)
		errs = append(errs, err, informer.SetTransform(trim))
		return informer
	}
	byNamespace := func(object client.Object) { changed(object.GetNamespace()) }
	metadata := func(kind schema.GroupVersionKind, trim toolscache.TransformFunc, changed func(client.Object)) toolscache.SharedIndexInformer {
		return watched(kind, &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}, trim, handler(changed))
	}
	w.bindings = watched(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), &rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}, trimManagedFields,
		handler(byNamespace), client.MatchingLabels{Label: LabelValue})
	for _, resource := range resources {
		rows := writers()
		i := slices.IndexFunc(rows, func(k kinds.Kind) bool { return k.Resource == resource })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("resource %q is not one of sets", resource))
		case !rows[i].ClusterScoped:
			w.sets = append(w.sets, metadata(rows[i].GroupVersionKind, trimName, byNamespace))
		default:
			w.sidecars = watched(
				rows[i].GroupVersionKind, &unstructured.Unstructured{}, &unstructured.UnstructuredList{}, trimSidecarSet, w.selectionEvents(changed),
			)
			w.namespaces = metadata(corev1.SchemeGroupVersion.WithKind("Namespace"), trimLabels, func(object client.Object) { changed(object.GetName()) })
		}
	}
	return w, errors.Join(errs...)
}

// newInformer returns an informer of the objects that the list option select.
func newInformer(connection client.WithWatch, object client.Object, list client.ObjectList, options ...client.ListOption) toolscache.SharedIndexInformer {
	copied := func(raw metav1.ListOptions) (client.ObjectList, []client.ListOption) {
		into := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // A copy has the same type.
		return into, append([]client.ListOption{&client.ListOptions{Raw: &raw}}, options...)
	}
	return startup.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			into, options := copied(raw)
			return into, connection.List(ctx, into, options...)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			into, options := copied(raw)
			return connection.Watch(ctx, into, options...)
		},
	}, object, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}, func(error) {})
}

// handler returns a handler that calls changed for each object that is new, has changed or is gone.
func handler(changed func(client.Object)) toolscache.ResourceEventHandler {
	call := func(object any) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if typed, ok := object.(client.Object); ok {
			changed(typed)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: call, DeleteFunc: call, UpdateFunc: func(_, after any) { call(after) }}
}

// trimManagedFields removes what nothing reads.
func trimManagedFields(object any) (any, error) {
	if full, ok := object.(client.Object); ok {
		full.SetManagedFields(nil)
	}
	return object, nil
}

// trimName keeps what identifies an object, trimLabels its labels, too.
func trimName(object any) (any, error) {
	if full, ok := object.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: full.Namespace, Name: full.Name, ResourceVersion: full.ResourceVersion},
		}, nil
	}
	return object, nil
}

func trimLabels(object any) (any, error) {
	if full, ok := object.(*metav1.PartialObjectMetadata); ok {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: full.Name, Labels: full.Labels, ResourceVersion: full.ResourceVersion}}, nil
	}
	return object, nil
}

// informers returns all informers.
func (w *world) informers() []toolscache.SharedIndexInformer {
	informers := append([]toolscache.SharedIndexInformer{w.bindings}, w.sets...)
	if w.sidecars != nil {
		informers = append(informers, w.sidecars, w.namespaces)
	}
	return informers
}

// synced reports whether all informers have the objects that existed at the start.
func (w *world) synced() bool {
	return !slices.ContainsFunc(w.informers(), func(each toolscache.SharedIndexInformer) bool { return !each.HasSynced() })
}

// needs reports whether a namespace has sets, or SidecarSets select it that update pods.
func (w *world) needs(namespace string) bool {
	for _, informer := range w.sets {
		if found, _ := informer.GetIndexer().IndexKeys(toolscache.NamespaceIndex, namespace); len(found) > 0 {
			return true
		}
	}
	if w.sidecars == nil {
		return false
	}
	found, _, _ := w.namespaces.GetIndexer().GetByKey(namespace)
	object, ok := found.(*metav1.PartialObjectMetadata)
	if !ok {
		return false
	}
	for _, stored := range w.sidecars.GetIndexer().List() {
		if set, ok := stored.(*selection); ok && set.selects(object) {
			return true
		}
	}
	return false
}
