// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
)

// ReadManifests returns the objects of a YAML file, or of all YAML files below a folder, in
// the order of the paths. It skips kustomizations. A relative path starts at the module's
// root.
func ReadManifests(path string) ([]*unstructured.Unstructured, error) {
	if !filepath.IsAbs(path) {
		root, err := ModuleRoot()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(root, path)
	}
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir(), filepath.Ext(name) != ".yaml", entry.Name() == "kustomization.yaml":
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := ParseManifests(content)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return objects, nil
}

// Manifests returns the objects of files and folders, as ReadManifests does, without those of some kinds.
func Manifests(tb testing.TB, paths []string, without ...string) []*unstructured.Unstructured {
	tb.Helper()
	var all []*unstructured.Unstructured
	for _, path := range paths {
		objects, err := ReadManifests(path)
		expect.NoError(tb, err)
		all = append(all, objects...)
	}
	return slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool { return slices.Contains(without, object.GetKind()) })
}

// SetVariable changes the expression of a variable of policies, as installations do.
func SetVariable(tb testing.TB, objects []*unstructured.Unstructured, name, expression string) {
	tb.Helper()
	for _, object := range objects {
		variables, found, err := unstructured.NestedSlice(object.Object, "spec", "variables")
		expect.NoError(tb, err)
		for _, each := range variables {
			if variable, ok := each.(map[string]any); ok && variable["name"] == name {
				variable["expression"] = expression
			}
		}
		if found {
			expect.NoError(tb, unstructured.SetNestedSlice(object.Object, variables, "spec", "variables"))
		}
	}
}

// ParseManifests returns the objects of a YAML text. It skips empty documents.
func ParseManifests(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("parse manifest: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// Apply creates the objects that do not exist yet. Unknown fields are an error.
func (e *Env) Apply(tb testing.TB, objects ...*unstructured.Unstructured) {
	tb.Helper()
	strict := client.WithFieldValidation(e.Client, "Strict")
	for _, object := range objects {
		expect.NoErrorf(tb, client.IgnoreAlreadyExists(strict.Create(tb.Context(), object.DeepCopy())), "create %s %s", object.GetKind(), object.GetName())
	}
}

// MergePatch returns a JSON merge patch.
func MergePatch(body string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(body))
}

// CreatePod creates the pod with its status, as InitPod and RunPod do, and returns it as stored.
func CreatePod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	status := pod.Status
	created, err := InitPod(ctx, c, pod)
	if err != nil {
		return nil, err
	}
	return RunPod(ctx, c, created, status)
}

// InitPod creates the pod with the first status that a kubelet writes for a pod without init
// containers: it has the pod's conditions and no address. It returns the pod as stored.
func InitPod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	conditions := pod.Status.Conditions
	pod.UID, pod.ResourceVersion = "", ""
	if err := c.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return setStatus(ctx, c, pod, corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions})
}

// RunPod sets the status that a kubelet writes when it has started the pod's containers. It
// returns the pod as stored.
func RunPod(ctx context.Context, c client.Client, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	return setStatus(ctx, c, pod, status)
}

func setStatus(ctx context.Context, c client.Client, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	// A manager may write the pod between two requests, so the status is patched.
	before := pod.DeepCopy()
	pod.Status = status
	if err := c.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); err != nil {
		return nil, fmt.Errorf("set the status of pod %s: %w", pod.Name, err)
	}
	return pod, nil
}
