// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package owner decides which object owns another one. Everybody may write any UID into the owner references of an
// object that they create, so that a UID alone proves nothing: an owner is found by its kind and its UID, and only in
// the namespace of what it owns.
package owner

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Key identifies an owner for the objects of a namespace. The version of its kind does not count: the versions of a
// kind are the same objects.
type Key struct {
	// Namespace is that of the owned objects, which is that of the owner unless this has none.
	Namespace string
	// UID and Kind are those of the owner.
	UID types.UID
	schema.GroupKind
}

// String returns the key as the value of an index.
func (k Key) String() string {
	return k.Namespace + "/" + k.Group + "/" + k.Kind + "/" + string(k.UID)
}

// Of returns the key of an object of the kind for what it owns in its own namespace.
func Of(kind schema.GroupVersionKind, object metav1.Object) Key {
	return Key{Namespace: object.GetNamespace(), UID: object.GetUID(), GroupKind: kind.GroupKind()}
}

// In returns the key for the objects of a namespace, for an owner that has none.
func (k Key) In(namespace string) Key {
	k.Namespace = namespace
	return k
}

// Named returns the key of the owner that a reference of an object names.
func Named(object metav1.Object, reference *metav1.OwnerReference) Key {
	return Key{Namespace: object.GetNamespace(), UID: reference.UID, GroupKind: kindOf(reference)}
}

func kindOf(reference *metav1.OwnerReference) schema.GroupKind {
	group, version, found := strings.Cut(reference.APIVersion, "/")
	if !found || strings.Contains(version, "/") {
		group = "" // The core group has no slash, and more than one is no group.
	}
	return schema.GroupKind{Group: group, Kind: reference.Kind}
}

// Controls reports whether the owner with the key controls the object.
func (k Key) Controls(object metav1.Object) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && Named(object, controller) == k
}

// Owns reports whether the owner with the key is one of the owners of the object.
func (k Key) Owns(object metav1.Object) bool {
	references := object.GetOwnerReferences()
	return slices.ContainsFunc(references, func(each metav1.OwnerReference) bool { return Named(object, &each) == k })
}

// Controller returns the namespace and the name of the object of the kind that controls the object, and false if no
// object of the kind does. Nobody has compared its UID.
func Controller(object metav1.Object, kind schema.GroupVersionKind) (types.NamespacedName, bool) {
	controller := metav1.GetControllerOfNoCopy(object)
	if !Is(controller, kind.GroupKind()) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: controller.Name}, true
}

// Is reports whether the reference, which may be nil, is to an object of the kind in any version.
func Is(reference *metav1.OwnerReference, kind schema.GroupKind) bool {
	return reference != nil && kindOf(reference) == kind
}

// Add returns the references with another one, in the place of one to the same object.
func Add(references []metav1.OwnerReference, added metav1.OwnerReference) []metav1.OwnerReference {
	return append(slices.DeleteFunc(slices.Clone(references), func(each metav1.OwnerReference) bool { return each.UID == added.UID }), added)
}

// ForeignError means that an object must not be written for a set, because it does not belong to its namespace.
type ForeignError struct {
	// Set and Object describe both: the kind, the namespace and the name.
	Set, Object string
}

// Error names both.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("refuse to write %s for %s: it is not in the namespace of the set", e.Object, e.Set)
}

// Describe returns the kind, the namespace and the name of an object.
func Describe(kind string, object metav1.Object) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}
