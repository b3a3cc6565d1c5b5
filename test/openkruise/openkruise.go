// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openkruise restores objects that OpenKruise has stored, for tests of a take-over. Its folder testdata has the
// objects, and says how they were recorded.
package openkruise

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed testdata/*.jsonl
var recorded embed.FS

// Restore stores the objects of a kind, such as DaemonSet, and what they own, as OpenKruise has stored them, and returns
// those of the kind. The namespace and the prefix of the nodes' names is the given namespace. Further pairs of texts are
// replaced, too.
func Restore(tb testing.TB, c client.Client, namespace, kind string, oldnew ...string) []*unstructured.Unstructured {
	tb.Helper()
	text, err := recorded.ReadFile("testdata/" + strings.ToLower(kind) + "s.jsonl")
	if err != nil {
		tb.Fatal("read the objects:", err)
	}
	oldnew = append(oldnew, "recorded", namespace)
	var restored []*unstructured.Unstructured
	for line := range bytes.Lines(text) {
		// Owners come before what they own, and their new UIDs replace the recorded ones.
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(strings.NewReplacer(oldnew...).Replace(string(line)))); err != nil {
			tb.Fatalf("decode %s: %v", line, err)
		}
		uid := string(object.GetUID())
		object.SetUID("")
		object.SetNamespace(namespace)
		if err := store(tb, c, object); err != nil {
			tb.Fatalf("store %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		oldnew = append(oldnew, uid, string(object.GetUID()))
		if object.GetKind() == kind {
			restored = append(restored, object)
		}
	}
	return restored
}

// store creates the object with its status.
func store(tb testing.TB, c client.Client, object *unstructured.Unstructured) error {
	status, has := object.Object["status"]
	if err := c.Create(tb.Context(), object); err != nil || !has {
		return err
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	patch := types.MergePatchType
	if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod") {
		patch = types.StrategicMergePatchType // The kubelet of the test writes other conditions.
	}
	return c.Status().Patch(tb.Context(), object, client.RawPatch(patch, body))
}

// Versions returns the UIDs and the resource versions of the objects of the kinds in the namespace, by kind and name.
func Versions(tb testing.TB, c client.Client, namespace string, kinds ...schema.GroupVersionKind) map[string]string {
	tb.Helper()
	versions := map[string]string{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(tb.Context(), list, client.InNamespace(namespace)); err != nil {
			tb.Fatalf("list %s: %v", kind.Kind, err)
		}
		for _, item := range list.Items {
			versions[kind.Kind+" "+item.GetName()] = fmt.Sprintf("%s at version %s", item.GetUID(), item.GetResourceVersion())
		}
	}
	return versions
}

// Changed returns why the status of the object differs from the restored one in fields that this has, nil if it does not.
// The generation is another one.
func Changed(tb testing.TB, c client.Client, restored *unstructured.Unstructured) error {
	tb.Helper()
	now := restored.DeepCopy()
	if err := c.Get(tb.Context(), client.ObjectKeyFromObject(restored), now); err != nil {
		return err
	}
	was, _, _ := unstructured.NestedMap(restored.Object, "status")
	is, _, _ := unstructured.NestedMap(now.Object, "status")
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(was)) {
		if field != "observedGeneration" && !cmp.Equal(was[field], is[field]) {
			errs = append(errs, fmt.Errorf("%s %s: status.%s is %v, was %v", now.GetKind(), now.GetName(), field, is[field], was[field]))
		}
	}
	return errors.Join(errs...)
}
