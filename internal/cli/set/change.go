// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package set

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// change sets the images in the object, whose pods are specified at the path, and returns the operations of the JSON patch that does
// the same: each tests the name of its container, so that it cannot change another one. There is none if nothing changes.
func change(object map[string]any, path []string, images []pair) (operations []map[string]any, err error) {
	var names []string
	for _, list := range []string{"initContainers", "containers"} {
		at := append(slices.Clone(path), list)
		containers, found, err := unstructured.NestedSlice(object, at...)
		if err != nil || !found {
			if err != nil {
				return nil, fmt.Errorf("read the containers: %w", err)
			}
			continue
		}
		for n, each := range containers {
			container, _ := each.(map[string]any)
			name, _ := container["name"].(string)
			names = append(names, name)
			image := imageFor(images, name)
			if container == nil || image == "" || container["image"] == image {
				continue
			}
			container["image"] = image
			pointer := "/" + strings.Join(at, "/") + "/" + strconv.Itoa(n)
			operations = append(operations,
				map[string]any{"op": "test", "path": pointer + "/name", "value": name},
				map[string]any{"op": "add", "path": pointer + "/image", "value": image})
		}
		if err := unstructured.SetNestedSlice(object, containers, at...); err != nil {
			return nil, fmt.Errorf("set the images: %w", err)
		}
	}
	for _, p := range images {
		if p.container != all && !slices.Contains(names, p.container) {
			return nil, fmt.Errorf("container %q not found: its containers are %s", p.container, text.List(names, text.MaxNames))
		}
	}
	return operations, nil
}

// imageFor returns the image for the container, empty if there is none.
func imageFor(images []pair, container string) string {
	for _, p := range images {
		if p.container == container || p.container == all {
			return p.image
		}
	}
	return ""
}
