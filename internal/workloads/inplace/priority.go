// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

// batches returns the containers in the order in which they change: those with the highest launch
// priority, then those with the next one. Containers without a priority change first. There is at
// least one batch. Nothing is ordered in a pod that is not scheduled: a later batch may contain what
// lets it be scheduled.
func batches(pod *corev1.Pod, names sets.Set[string]) []sets.Set[string] {
	if pod.Spec.NodeName == "" {
		return []sets.Set[string]{names}
	}
	levels, without := map[int]sets.Set[string]{}, sets.New[string]()
	priority := priorities(pod)
	for name := range names {
		if level, ok := priority[name]; ok {
			levels[level] = sets.New(name).Union(levels[level])
		} else {
			without.Insert(name)
		}
	}
	batches := []sets.Set[string]{}
	for _, level := range slices.Backward(slices.Sorted(maps.Keys(levels))) {
		batches = append(batches, levels[level])
	}
	if len(batches) == 0 {
		return []sets.Set[string]{without}
	}
	batches[0] = batches[0].Union(without)
	return batches
}

// inBatches returns the images and resources of the change that the pod does not have, by batch.
func (c *Change) inBatches(pod *corev1.Pod) []*Change {
	images, resources := c.missing(pod)
	var all []*Change
	for _, batch := range batches(pod, sets.KeySet(images).Union(sets.KeySet(resources))) {
		part := &Change{}
		part.Images, _ = divide(images, batch)
		part.Resources, _ = divide(resources, batch)
		all = append(all, part)
	}
	return all
}

// priorities returns the launch priorities of the pod's containers, by name. If OpenKruise's webhook
// has written them to the pod, those are returned: OpenKruise reads no others. A priority that is no
// integer counts as 0.
func priorities(pod *corev1.Pod) map[string]int {
	written, found := map[string]int{}, map[string]int{}
	ordered := pod.Annotations[pub.ContainerLaunchPriorityKey] == pub.ContainerLaunchOrdered
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		found[c.Name] = 0
		if ordered {
			found[c.Name] = -i
		}
		for _, variable := range c.Env {
			if level, ok := barrier(&variable); ok {
				written[c.Name] = level
			}
			if variable.Name == pub.ContainerLaunchPriorityEnv && !ordered {
				found[c.Name] = 0
				if level, err := strconv.Atoi(variable.Value); err == nil {
					found[c.Name] = level
				}
			}
		}
	}
	if len(written) > 0 {
		return written
	}
	return found
}

// barrier returns the priority that OpenKruise's webhook has written to the variable.
func barrier(variable *corev1.EnvVar) (int, bool) {
	source := variable.ValueFrom
	if variable.Name != pub.ContainerLaunchBarrierEnv || source == nil || source.ConfigMapKeyRef == nil {
		return 0, false
	}
	text, ok := strings.CutPrefix(source.ConfigMapKeyRef.Key, pub.ContainerLaunchBarrierPrefix)
	level, err := strconv.Atoi(text)
	return level, ok && err == nil
}

// divide returns the values of the containers in the batch, and those of the others.
func divide[V any](values map[string]V, batch sets.Set[string]) (now, later map[string]V) {
	for name, value := range values {
		part := &later
		if batch.Has(name) {
			part = &now
		}
		if *part == nil {
			*part = map[string]V{}
		}
		(*part)[name] = value
	}
	return now, later
}

// postpone returns the labels and annotations to change with the batch, and by container those that
// are set later: a container of a later batch refers to them in its environment, and none of this
// batch. If it is restarted before its batch, it keeps the old values with the old image.
func (c *Change) postpone(
	pod *corev1.Pod, batch, later sets.Set[string],
) (labels, annotations map[string]*string, next map[string]metav1.ObjectMeta) {
	labels, annotations = maps.Clone(c.Labels), maps.Clone(c.Annotations)
	needed := sets.New[string]()
	for name := range batch {
		needed.Insert(fieldPaths(container(pod, name))...)
	}
	for name := range later {
		meta := metav1.ObjectMeta{}
		for _, path := range fieldPaths(container(pod, name)) {
			if needed.Has(path) {
				continue
			}
			switch field, key := metadataKey(path); {
			case field == labelsField && c.Labels[key] != nil:
				metav1.SetMetaDataLabel(&meta, key, *c.Labels[key])
				delete(labels, key)
			case field == annotationsField && c.Annotations[key] != nil:
				metav1.SetMetaDataAnnotation(&meta, key, *c.Annotations[key])
				delete(annotations, key)
			}
		}
		if len(meta.Labels)+len(meta.Annotations) == 0 {
			continue
		}
		if next == nil {
			next = map[string]metav1.ObjectMeta{}
		}
		next[name] = meta
	}
	return labels, annotations, next
}
