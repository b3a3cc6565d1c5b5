// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package owner_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

func TestOwnersAreFoundInTheirNamespaceByKindAndUID(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "1"}}
	own := *metav1.NewControllerRef(set, kind)
	change := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		reference := *own.DeepCopy()
		change(&reference)
		return reference
	}
	version := func(version string) metav1.OwnerReference {
		return change(func(r *metav1.OwnerReference) { r.APIVersion = version })
	}
	for name, test := range map[string]struct {
		namespace      string
		reference      metav1.OwnerReference
		controls, owns bool
		// named is whether events of the object enqueue the set.
		named bool
	}{
		"the set":                         {namespace: "ns", reference: own, controls: true, owns: true, named: true},
		"another version":                 {namespace: "ns", reference: version("apps.kruise.io/v1alpha1"), controls: true, owns: true, named: true},
		"a version that is not served":    {namespace: "ns", reference: version("apps.kruise.io/v9"), controls: true, owns: true, named: true},
		"another namespace":               {namespace: "hostile", reference: version("apps.kruise.io/v9")},
		"another group":                   {namespace: "ns", reference: version("apps/v1")},
		"a group with that prefix":        {namespace: "ns", reference: version("apps.kruise.io.example.com/v1")},
		"no group":                        {namespace: "ns", reference: version("apps.kruise.io")},
		"no version":                      {namespace: "ns", reference: version("apps.kruise.io/v1/v1")},
		"another kind":                    {namespace: "ns", reference: change(func(r *metav1.OwnerReference) { r.Kind = "CloneSet" })},
		"not as controller":               {namespace: "ns", reference: change(func(r *metav1.OwnerReference) { r.Controller = nil }), owns: true},
		"an earlier set of the same name": {namespace: "ns", reference: change(func(r *metav1.OwnerReference) { r.UID = "0" }), named: true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, OwnerReferences: []metav1.OwnerReference{test.reference}}}
		key := owner.Of(kind, set)
		if key.Controls(pod) != test.controls || key.Owns(pod) != test.owns {
			t.Errorf("%s: controls %t, owns %t", name, key.Controls(pod), key.Owns(pod))
		}
		if indexed := owner.Named(pod, &pod.OwnerReferences[0]).String() == key.String(); indexed != test.owns {
			t.Errorf("%s: found in an index: %t", name, indexed)
		}
		got, found := owner.Controller(pod, kind)
		if want := (types.NamespacedName{Namespace: "ns", Name: "db"}); test.namespace == "ns" && found != test.named || found && test.namespace == "ns" && got != want {
			t.Errorf("%s: the controller is %s, %t", name, got, found)
		}
		if found && got.Namespace != test.namespace {
			t.Errorf("%s: the controller is in %s", name, got.Namespace)
		}
	}
}

func TestAReferenceReplacesOneToTheSameObject(t *testing.T) {
	first, second := metav1.OwnerReference{UID: "1", Name: "a"}, metav1.OwnerReference{UID: "2", Name: "b"}
	added := metav1.OwnerReference{UID: "1", Name: "a", Controller: new(true)}
	before := []metav1.OwnerReference{first, second}
	if diff := cmp.Diff([]metav1.OwnerReference{second, added}, owner.Add(before, added)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{first, second}, before); diff != "" {
		t.Errorf("the references before have changed:\n%s", diff)
	}
}
