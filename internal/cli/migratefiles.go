// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/migrate"
	"github.com/seamark-dev/seamark/internal/manifest"
)

// clusterOfFiles returns the objects of OpenKruise in the files. It ignores all other objects.
func clusterOfFiles(ctx context.Context, names []string, in io.Reader) (migrate.Cluster, error) {
	var c migrate.Cluster
	inputs, err := loadFiles(ctx, names, in)
	if err != nil {
		return c, err
	}
	for _, input := range inputs {
		err := eachObject(input, func(object *unstructured.Unstructured) {
			if object.GroupVersionKind().Group != v1alpha1.GroupName {
				return
			}
			switch object.GetKind() {
			case "PodProbeMarker":
				c.Markers = append(c.Markers, object)
			case "CloneSet":
				c.CloneSets = append(c.CloneSets, object)
			case "StatefulSet":
				c.StatefulSets = append(c.StatefulSets, object)
			}
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// eachObject calls take with each object of the input, and with each item of its lists.
func eachObject(input manifest.Input, take func(*unstructured.Unstructured)) error {
	decoder := yaml.NewYAMLOrJSONDecoder(input.Reader, 4096)
	for {
		var document runtime.RawExtension
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", input.Name, err)
		case len(document.Raw) == 0 || string(document.Raw) == "null":
			continue
		}
		// Its numbers are integers, as validation needs them.
		decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(document.Raw, nil, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", input.Name, err)
		}
		switch object := decoded.(type) {
		case *unstructured.Unstructured:
			take(object)
		case *unstructured.UnstructuredList:
			for i := range object.Items {
				take(&object.Items[i])
			}
		}
	}
}
