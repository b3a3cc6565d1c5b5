// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// operation is an operation of a JSON patch, as RFC 6902 defines it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from,omitempty"`
	Value any    `json:"value,omitempty"`
}

// difference returns the injection as a patch: of annotations, containers, volumes and pull secrets, because it changes nothing
// else. Elements that stay are not part of it, so that their fields of later Kubernetes versions remain, and remain theirs.
func difference(before, after *corev1.Pod) ([]operation, error) {
	if before == after {
		return nil, nil
	}
	container := func(c *corev1.Container) string { return c.Name }
	inits, err := elements("/spec/initContainers", before.Spec.InitContainers, after.Spec.InitContainers, container)
	if err != nil {
		return nil, err
	}
	containers, err := elements("/spec/containers", before.Spec.Containers, after.Spec.Containers, container)
	if err != nil {
		return nil, err
	}
	volumes, err := elements("/spec/volumes", before.Spec.Volumes, after.Spec.Volumes, func(v *corev1.Volume) string { return v.Name })
	if err != nil {
		return nil, err
	}
	secrets, err := elements("/spec/imagePullSecrets", before.Spec.ImagePullSecrets, after.Spec.ImagePullSecrets,
		func(s *corev1.LocalObjectReference) string { return s.Name })
	if err != nil {
		return nil, err
	}
	return slices.Concat(annotations(before.Annotations, after.Annotations), inits, containers, volumes, secrets), nil
}

// annotations returns the patch of annotations. The injection removes none.
func annotations(before, after map[string]string) []operation {
	if before == nil && len(after) > 0 {
		return []operation{{Op: "add", Path: "/metadata/annotations", Value: after}}
	}
	var patch []operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if value, found := before[key]; !found || value != after[key] {
			escaped := strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
			patch = append(patch, operation{Op: "add", Path: "/metadata/annotations/" + escaped, Value: after[key]})
		}
	}
	return patch
}

// elements returns the patch of a list: it removes, moves, adds and changes elements, by their names.
func elements[T any](path string, before, after []T, nameOf func(*T) string) ([]operation, error) {
	previous, current := names(before, nameOf), names(after, nameOf)
	switch {
	case len(before) == 0 && len(after) == 0:
		return nil, nil
	case len(before) == 0:
		return []operation{{Op: "add", Path: path, Value: after}}, nil
	case len(previous) < len(before) || len(current) < len(after):
		// Names occur twice: the API server will refuse the pod.
		return compare(path, before, after)
	}
	var patch []operation
	var now []string
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	for i := range slices.Backward(before) {
		name := nameOf(&before[i])
		if _, stays := current[name]; stays {
			now = append(now, name)
		} else {
			patch = append(patch, operation{Op: "remove", Path: at(i)})
		}
	}
	slices.Reverse(now)
	for i := range after {
		name := nameOf(&after[i])
		old, found := previous[name]
		if !found {
			patch = append(patch, operation{Op: "add", Path: at(i), Value: &after[i]})
			now = slices.Insert(now, i, name)
			continue
		}
		if now[i] != name {
			from := slices.Index(now, name)
			patch = append(patch, operation{Op: "move", From: at(from), Path: at(i)})
			now = slices.Insert(slices.Delete(now, from, from+1), i, name)
		}
		changes, err := compare(at(i), &before[old], &after[i])
		if err != nil {
			return nil, err
		}
		patch = append(patch, changes...)
	}
	return patch, nil
}

// names returns the positions of the elements by their names.
func names[T any](list []T, nameOf func(*T) string) map[string]int {
	found := make(map[string]int, len(list))
	for i := range list {
		found[nameOf(&list[i])] = i
	}
	return found
}

// compare returns the patch of the value at the path.
func compare[T any](path string, before, after T) ([]operation, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	// Parts of pods always encode.
	from, _ := json.Marshal(map[string]any{"value": before})
	to, _ := json.Marshal(map[string]any{"value": after})
	changes, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %s of a pod: %w", path, err)
	}
	patch := make([]operation, len(changes))
	for i, c := range changes {
		patch[i] = operation{Op: c.Operation, Path: path + strings.TrimPrefix(c.Path, "/value"), Value: c.Value}
	}
	return patch, nil
}
