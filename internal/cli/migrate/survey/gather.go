// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey reads from a cluster what package migration checks. It only reads.
package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Unread is something that could not be read.
type Unread struct {
	// What was read.
	What string
	// Err is why it could not be read.
	Err error
}

// Read reads the objects in the namespace, or in all namespaces if it is empty. What could not be
// read is returned; the rest is complete.
func Read(ctx context.Context, reader client.Reader, namespace string) (migration.Cluster, []Unread) {
	r := &reading{reader: reader, namespace: namespace}
	r.objects(ctx, func(kind *kinds.Kind) bool { return namespace == "" || !kind.ClusterScoped })
	r.pods(ctx)
	r.manager(ctx)
	r.nodes(ctx)
	r.definitions(ctx)
	if namespace == "" {
		r.protected(ctx, "namespaces", corev1.SchemeGroupVersion.WithKind("Namespace"))
		r.protected(ctx, "customresourcedefinitions", apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	}
	return r.cluster, r.unread
}

// protected reads the objects of a kind whose label protects them from deletion while they contain others.
func (r *reading) protected(ctx context.Context, what string, kind schema.GroupVersionKind) {
	list(ctx, r, what, cluster.MetadataList(kind), func(object *metav1.PartialObjectMetadata) {
		object.SetGroupVersionKind(kind)
		r.cluster.Protected = append(r.cluster.Protected, object)
	}, client.MatchingLabels{v1alpha1.DeleteProtectionKey: v1alpha1.DeleteProtectionCascading})
}

// ReadBack reads what a return to OpenKruise depends on, as Read does.
func ReadBack(ctx context.Context, reader client.Reader, namespace string) (migration.Cluster, []Unread) {
	r := &reading{reader: reader, namespace: namespace}
	r.objects(ctx, func(kind *kinds.Kind) bool { return kind.Role == kinds.Set })
	r.manager(ctx)
	r.revisions(ctx)
	return r.cluster, r.unread
}

// objects reads the markers, and the objects of the kinds that are wanted, in the first version that has any.
func (r *reading) objects(ctx context.Context, wanted func(*kinds.Kind) bool) {
	r.cluster.Add(r.unstructured(ctx, "podprobemarkers", v1alpha1.GroupVersion().WithKind(migration.MarkerKind))...)
	for _, kind := range kinds.Table() {
		if !wanted(&kind) {
			continue
		}
		unread := len(r.unread)
		for _, version := range migration.Versions(&kind) {
			found := r.unstructured(ctx, kind.Definition(), kind.GroupKind().WithVersion(version))
			if r.cluster.Add(found...); len(found) > 0 || len(r.unread) > unread {
				break
			}
		}
	}
}

// revisions reads the update revisions of the sets.
func (r *reading) revisions(ctx context.Context) {
	wanted := map[string]sets.Set[string]{}
	for _, set := range r.sets() {
		name, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
		// The status of a DaemonSet has the hash of its revision, also as its updateRevision.
		if hash, found, _ := unstructured.NestedString(set.Object, "status", "daemonSetHash"); found {
			name = set.GetName() + "-" + hash
		}
		if wanted[set.GetNamespace()] == nil {
			wanted[set.GetNamespace()] = sets.New[string]()
		}
		wanted[set.GetNamespace()].Insert(name)
	}
	for _, namespace := range slices.Sorted(maps.Keys(wanted)) {
		list(ctx, r, "controllerrevisions of namespace "+namespace, &appsv1.ControllerRevisionList{}, func(revision *appsv1.ControllerRevision) {
			if wanted[namespace].Has(revision.Name) {
				r.cluster.Revisions = append(r.cluster.Revisions, revision)
			}
		}, client.InNamespace(namespace))
	}
}

// sets returns the objects of all kinds of sets.
func (r *reading) sets() []*unstructured.Unstructured {
	var sets []*unstructured.Unstructured
	for _, kind := range kinds.Table() {
		if kind.Role == kinds.Set {
			sets = append(sets, r.cluster.Objects[kind.Kind]...)
		}
	}
	return sets
}

type reading struct {
	reader    client.Reader
	namespace string
	cluster   migration.Cluster
	unread    []Unread
}

// failed records an error. A kind that does not exist has no objects.
func (r *reading) failed(what string, err error) {
	if err != nil && !cluster.IsNotInstalled(err) {
		r.unread = append(r.unread, Unread{What: what, Err: fmt.Errorf("list %s: %w", what, err)})
	}
}

// list lists objects in pages.
func list[T runtime.Object](ctx context.Context, r *reading, what string, empty client.ObjectList, take func(T), which ...client.ListOption) {
	r.failed(what, cluster.Each(ctx, r.reader, empty, take, which...))
}

func (r *reading) unstructured(ctx context.Context, what string, kind schema.GroupVersionKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	empty := &unstructured.UnstructuredList{}
	empty.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	list(ctx, r, what, empty, func(object *unstructured.Unstructured) { found = append(found, object) }, client.InNamespace(r.namespace))
	return found
}

// pods reads the pods of the namespaces that have markers or sets. It keeps only the fields that
// migration.Cluster needs.
func (r *reading) pods(ctx context.Context) {
	namespaces := sets.New[string]()
	for _, object := range slices.Concat(r.cluster.Markers, r.sets()) {
		namespaces.Insert(object.GetNamespace())
	}
	for _, namespace := range sets.List(namespaces) {
		list(ctx, r, "pods of namespace "+namespace, &corev1.PodList{}, func(pod *corev1.Pod) {
			r.cluster.Pods = append(r.cluster.Pods, trim(pod))
		}, client.InNamespace(namespace))
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
	list(ctx, r, "nodes", cluster.MetadataList(corev1.SchemeGroupVersion.WithKind("Node")), func(node *metav1.PartialObjectMetadata) {
		if serverless.IsVirtual(node.Labels) {
			r.cluster.Virtual.Insert(node.Name)
		}
	})
}

// groups returns the API groups of OpenKruise.
func groups() []string { return []string{v1alpha1.GroupName, "policy.kruise.io"} }

// internalKinds returns the CRDs whose objects OpenKruise creates for itself.
func internalKinds() []string { return []string{"nodeimages.apps.kruise.io"} }

// definitions reads the CRDs of OpenKruise, and whether they have objects.
func (r *reading) definitions(ctx context.Context) {
	var found []*apiextensionsv1.CustomResourceDefinition
	list(ctx, r, "customresourcedefinitions", &apiextensionsv1.CustomResourceDefinitionList{}, func(d *apiextensionsv1.CustomResourceDefinition) {
		if slices.Contains(groups(), d.Spec.Group) && !slices.Contains(internalKinds(), d.Name) {
			found = append(found, d)
		}
	})
	for _, d := range found {
		r.definition(ctx, d)
	}
}

func (r *reading) definition(ctx context.Context, found *apiextensionsv1.CustomResourceDefinition) {
	served := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if served < 0 {
		return
	}
	d := migration.Definition{Name: found.Name, Kind: found.Spec.Names.Kind, Stored: found.Status.StoredVersions}
	// One object is enough. Kinds of the cluster have no namespace.
	objects := cluster.MetadataList(schema.GroupVersionKind{Group: found.Spec.Group, Version: found.Spec.Versions[served].Name, Kind: d.Kind})
	r.failed(d.Name, r.reader.List(ctx, objects, client.Limit(1), client.InNamespace(r.namespace)))
	d.Objects = len(objects.Items) > 0
	r.cluster.Definitions = append(r.cluster.Definitions, d)
}

// managerName is the name of the Deployment of OpenKruise's manager.
const managerName = "kruise-controller-manager"

// manager reads how OpenKruise's manager runs, if there are workloads. It may be in any namespace.
func (r *reading) manager(ctx context.Context) {
	if len(r.cluster.Objects) == 0 {
		return
	}
	list(ctx, r, "deployments", &appsv1.DeploymentList{}, func(deployment *appsv1.Deployment) {
		r.cluster.Manager = migration.ManagerOf(deployment)
	}, client.MatchingFields{"metadata.name": managerName})
	if manager := r.cluster.Manager; manager != nil {
		config := &admissionregistrationv1.MutatingWebhookConfiguration{}
		err := client.IgnoreNotFound(r.reader.Get(ctx, client.ObjectKey{Name: planning.OpenKruiseWebhook}, config))
		r.failed("mutatingwebhookconfigurations", err)
		manager.Unknown = err == nil && !planning.IsOpenKruise(config, manager.LeaseNamespace)
	}
}
