// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads from a cluster what package migrate checks. It only reads.
package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/cli/migrate"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// page is the maximum number of objects in a response.
const page = 500

// Unread is something that could not be read.
type Unread struct {
	// What was read.
	What string
	// Err is why it could not be read.
	Err error
}

// Read reads the objects in the namespace, or in all namespaces if it is empty. What could not be
// read is returned; the rest is complete.
func Read(ctx context.Context, reader client.Reader, namespace string) (migrate.Cluster, []Unread) {
	r := &reading{reader: reader, namespace: namespace}
	r.cluster.Markers = r.list(ctx, "podprobemarkers", v1alpha1.GroupVersion().WithKind("PodProbeMarker"))
	r.sets(ctx)
	r.pods(ctx)
	r.manager(ctx)
	r.nodes(ctx)
	r.definitions(ctx)
	return r.cluster, r.unread
}

// ReadBack reads what a return to OpenKruise depends on, as Read does.
func ReadBack(ctx context.Context, reader client.Reader, namespace string) (migrate.Cluster, []Unread) {
	r := &reading{reader: reader, namespace: namespace}
	r.sets(ctx)
	r.manager(ctx)
	r.revisions(ctx)
	return r.cluster, r.unread
}

func (r *reading) sets(ctx context.Context) {
	r.cluster.CloneSets = r.list(ctx, "clonesets", v1alpha1.GroupVersion().WithKind("CloneSet"))
	r.cluster.StatefulSets = r.list(ctx, "statefulsets", v1beta1.GroupVersion().WithKind("StatefulSet"))
}

// revisions reads the update revisions of the sets.
func (r *reading) revisions(ctx context.Context) {
	wanted := map[string]sets.Set[string]{}
	for _, set := range slices.Concat(r.cluster.CloneSets, r.cluster.StatefulSets) {
		name, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
		if wanted[set.GetNamespace()] == nil {
			wanted[set.GetNamespace()] = sets.New[string]()
		}
		wanted[set.GetNamespace()].Insert(name)
	}
	for _, namespace := range slices.Sorted(maps.Keys(wanted)) {
		err := pages(ctx, r.reader, func() *appsv1.ControllerRevisionList { return &appsv1.ControllerRevisionList{} },
			func(l *appsv1.ControllerRevisionList) bool {
				for i := range l.Items {
					if wanted[namespace].Has(l.Items[i].Name) {
						r.cluster.Revisions = append(r.cluster.Revisions, &l.Items[i])
					}
				}
				return true
			}, client.InNamespace(namespace))
		r.failed("controllerrevisions of namespace "+namespace, err)
	}
}

type reading struct {
	reader    client.Reader
	namespace string
	cluster   migrate.Cluster
	unread    []Unread
}

// failed records an error. A kind that does not exist has no objects.
func (r *reading) failed(what string, err error) {
	if err != nil && !meta.IsNoMatchError(err) {
		r.unread = append(r.unread, Unread{What: what, Err: fmt.Errorf("list %s: %w", what, err)})
	}
}

// pages lists objects in pages, until take returns false.
func pages[L client.ObjectList](ctx context.Context, reader client.Reader, newList func() L, take func(L) bool, options ...client.ListOption) error {
	for token := ""; ; {
		list := newList()
		if err := reader.List(ctx, list, append(slices.Clone(options), client.Limit(page), client.Continue(token))...); err != nil {
			return err
		}
		if token = list.GetContinue(); !take(list) || token == "" {
			return nil
		}
	}
}

func (r *reading) list(ctx context.Context, what string, kind schema.GroupVersionKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	err := pages(ctx, r.reader, newUnstructuredList(kind), func(l *unstructured.UnstructuredList) bool {
		for i := range l.Items {
			found = append(found, &l.Items[i])
		}
		return true
	}, client.InNamespace(r.namespace))
	r.failed(what, err)
	return found
}

func newUnstructuredList(kind schema.GroupVersionKind) func() *unstructured.UnstructuredList {
	return func() *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}
}

// pods reads the pods of the namespaces that have markers or sets. It keeps only the fields that
// migrate.Cluster needs.
func (r *reading) pods(ctx context.Context) {
	namespaces := sets.New[string]()
	for _, object := range slices.Concat(r.cluster.Markers, r.cluster.CloneSets, r.cluster.StatefulSets) {
		namespaces.Insert(object.GetNamespace())
	}
	for _, namespace := range sets.List(namespaces) {
		err := pages(ctx, r.reader, func() *corev1.PodList { return &corev1.PodList{} }, func(l *corev1.PodList) bool {
			for i := range l.Items {
				r.cluster.Pods = append(r.cluster.Pods, trim(&l.Items[i]))
			}
			return true
		}, client.InNamespace(namespace))
		r.failed("pods of namespace "+namespace, err)
	}
}

func trim(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels,
			OwnerReferences: pod.OwnerReferences, ManagedFields: pod.ManagedFields,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: pod.Spec.Containers, InitContainers: pod.Spec.InitContainers},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
}

func (r *reading) nodes(ctx context.Context) {
	r.cluster.Virtual = sets.New[string]()
	err := pages(ctx, r.reader, newMetadataList(corev1.SchemeGroupVersion.WithKind("Node")), func(l *metav1.PartialObjectMetadataList) bool {
		for i := range l.Items {
			if serverless.IsVirtual(l.Items[i].Labels) {
				r.cluster.Virtual.Insert(l.Items[i].Name)
			}
		}
		return true
	})
	r.failed("nodes", err)
}

func newMetadataList(kind schema.GroupVersionKind) func() *metav1.PartialObjectMetadataList {
	return func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}
}

// groups returns the API groups of OpenKruise.
func groups() []string { return []string{v1alpha1.GroupName, "policy.kruise.io"} }

// internalKinds returns the CRDs whose objects OpenKruise creates for itself.
func internalKinds() []string { return []string{"nodeimages.apps.kruise.io"} }

// definitions reads the CRDs of OpenKruise, and whether they have objects.
func (r *reading) definitions(ctx context.Context) {
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	var found []*unstructured.Unstructured
	err := pages(ctx, r.reader, newUnstructuredList(kind), func(l *unstructured.UnstructuredList) bool {
		for i := range l.Items {
			group, _, _ := unstructured.NestedString(l.Items[i].Object, "spec", "group")
			if slices.Contains(groups(), group) && !slices.Contains(internalKinds(), l.Items[i].GetName()) {
				found = append(found, &l.Items[i])
			}
		}
		return true
	})
	r.failed("customresourcedefinitions", err)
	for _, object := range found {
		r.definition(ctx, object)
	}
}

func (r *reading) definition(ctx context.Context, object *unstructured.Unstructured) {
	d := migrate.Definition{Name: object.GetName()}
	d.Kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	d.Stored, _, _ = unstructured.NestedStringSlice(object.Object, "status", "storedVersions")
	_, group, _ := strings.Cut(d.Name, ".")
	kind := schema.GroupVersionKind{Group: group, Version: servedVersion(object), Kind: d.Kind}
	if kind.Version == "" {
		return
	}
	options := []client.ListOption{}
	if scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope"); scope == "Namespaced" {
		options = append(options, client.InNamespace(r.namespace))
	}
	err := pages(ctx, r.reader, newMetadataList(kind), func(l *metav1.PartialObjectMetadataList) bool {
		d.Objects = d.Objects || len(l.Items) > 0
		return !d.Objects
	}, options...)
	r.failed(d.Name, err)
	r.cluster.Definitions = append(r.cluster.Definitions, d)
}

// servedVersion returns the first version of the CRD that is served.
func servedVersion(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, each := range versions {
		version, _ := each.(map[string]any)
		if served, _, _ := unstructured.NestedBool(version, "served"); served {
			name, _, _ := unstructured.NestedString(version, "name")
			return name
		}
	}
	return ""
}
