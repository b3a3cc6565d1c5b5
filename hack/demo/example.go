// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// example holds the manifests that the demo applies, and the names in them that it needs.
type example struct {
	objects []*unstructured.Unstructured
	// namespace and deployment name the Deployment.
	namespace, deployment string
	// pods selects the Deployment's pods.
	pods labels.Selector
	// marker is the name of the PodProbeMarker.
	marker string
}

// readExample reads the YAML files in folder. It returns an error unless they contain exactly
// one Deployment and one PodProbeMarker. Objects without a namespace are created in default.
func readExample(folder string) (*example, error) {
	objects, err := readObjects(folder)
	if err != nil {
		return nil, err
	}
	e := &example{}
	for _, object := range objects {
		if err := e.addObject(object); err != nil {
			return nil, fmt.Errorf("folder %s: %s %s: %w", folder, object.GetKind(), object.GetName(), err)
		}
	}
	if e.deployment == "" || e.marker == "" {
		return nil, fmt.Errorf("folder %s: want manifests of a Deployment and a PodProbeMarker", folder)
	}
	return e, nil
}

// readObjects reads the YAML files in folder. Objects without a namespace get the namespace default.
func readObjects(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list manifests in %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		more, err := parseObjects(content)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// parseObjects returns the objects of one file.
func parseObjects(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("parse object: %w", err)
		}
		// A document that consists of comments has no kind.
		if object.GetKind() == "" || object.GetKind() == "Kustomization" {
			continue
		}
		if object.GetNamespace() == "" && object.GetKind() != "Namespace" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		objects = append(objects, object)
	}
}

func (e *example) addObject(object *unstructured.Unstructured) error {
	e.objects = append(e.objects, object)
	switch object.GetKind() {
	case "PodProbeMarker":
		if e.marker != "" {
			return errors.New("a second PodProbeMarker")
		}
		e.marker = object.GetName()
	case "Deployment":
		if e.deployment != "" {
			return errors.New("a second Deployment")
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return fmt.Errorf("parse object: %w", err)
		}
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err != nil {
			return fmt.Errorf("selector: %w", err)
		}
		e.namespace, e.deployment, e.pods = deployment.Namespace, deployment.Name, selector
	}
	return nil
}

// apply applies the example's objects to the cluster.
func (e *example) apply(ctx context.Context, objects client.Client) error {
	return applyObjects(ctx, objects, e.objects)
}

func applyObjects(ctx context.Context, to client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := to.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner("seamark-demo"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
