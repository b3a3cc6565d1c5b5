// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Decide returns the change that updates the pod in place from the template of its revision to
// another. If this is not possible, the change is nil and the text says why.
//
// The change is the difference of the templates, not of the pod and the template: what admission
// webhooks changed in the pod stays. What a previous update has not written to the containers yet,
// because of its grace period or a crash, is included.
func Decide(pod *corev1.Pod, from, to *corev1.PodTemplateSpec) (*Change, string) {
	change := &Change{
		Images:      map[string]string{},
		Resources:   map[string]corev1.ResourceRequirements{},
		Labels:      difference(from.Labels, to.Labels),
		Annotations: difference(from.Annotations, to.Annotations),
	}
	change = unwritten(pod).overlay(change)
	before, after := from.Spec.DeepCopy(), to.Spec.DeepCopy()
	if why := change.containers(pod, before, after); why != "" {
		return nil, why
	}
	if field := differentField(before, after); field != "" {
		return nil, "spec." + field + " changes"
	}
	if why := metadata(from, to); why != "" {
		return nil, why
	}
	if why := change.environment(pod); why != "" {
		return nil, why
	}
	if why := change.qos(pod); why != "" {
		return nil, why
	}
	return change, ""
}

// containers collects the images and the resources that differ, and makes them equal in both specs.
func (c *Change) containers(pod *corev1.Pod, before, after *corev1.PodSpec) string {
	if len(before.Containers) != len(after.Containers) {
		return "the number of containers changes"
	}
	for i := range before.Containers {
		old, wanted := &before.Containers[i], &after.Containers[i]
		if old.Name != wanted.Name {
			return fmt.Sprintf("container %s is not at the same place", wanted.Name)
		}
		_, imagePending := c.Images[wanted.Name]
		_, resourcesPending := c.Resources[wanted.Name]
		imagePending = imagePending || old.Image != wanted.Image
		resourcesPending = resourcesPending || !equality.Semantic.DeepEqual(old.Resources, wanted.Resources)
		if !imagePending && !resourcesPending {
			continue
		}
		spec := container(pod, wanted.Name)
		if spec == nil {
			return fmt.Sprintf("the pod does not have container %s", wanted.Name)
		}
		if imagePending {
			if wanted.Image == "" {
				return fmt.Sprintf("container %s has no image", wanted.Name)
			}
			c.Images[wanted.Name], old.Image = wanted.Image, wanted.Image
		}
		if resourcesPending {
			target, why := resize(spec, old.Resources, wanted.Resources)
			if why != "" {
				return why
			}
			c.Resources[wanted.Name], old.Resources = target, *wanted.Resources.DeepCopy()
		}
	}
	return ""
}

// metadata reports metadata of the template that differs and that is not a label or an annotation.
func metadata(from, to *corev1.PodTemplateSpec) string {
	before, after := from.ObjectMeta.DeepCopy(), to.ObjectMeta.DeepCopy()
	before.Labels, after.Labels, before.Annotations, after.Annotations = nil, nil, nil, nil
	if !equality.Semantic.DeepEqual(before, after) {
		return "metadata other than labels and annotations changes"
	}
	return ""
}

// environment reports a container that refers to a changed label or annotation in its environment and
// is not restarted by the change: it would keep the old value.
func (c *Change) environment(pod *corev1.Pod) string {
	for i := range pod.Spec.InitContainers {
		always := corev1.ContainerRestartPolicyAlways
		if p := pod.Spec.InitContainers[i].RestartPolicy; p == nil || *p != always {
			continue
		}
		if key := c.refers(&pod.Spec.InitContainers[i]); key != "" {
			return fmt.Sprintf("container %s refers to %s", pod.Spec.InitContainers[i].Name, key)
		}
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		if image, ok := c.Images[spec.Name]; ok && image != spec.Image {
			continue
		}
		if key := c.refers(spec); key != "" {
			return fmt.Sprintf("container %s refers to %s", spec.Name, key)
		}
	}
	return ""
}

// refers returns the field path of a changed label or annotation in the environment of the container.
func (c *Change) refers(spec *corev1.Container) string {
	for i := range spec.Env {
		source := spec.Env[i].ValueFrom
		if source == nil || source.FieldRef == nil {
			continue
		}
		path := source.FieldRef.FieldPath
		for prefix, changed := range map[string]map[string]*string{
			"metadata.labels['": c.Labels, "metadata.annotations['": c.Annotations,
		} {
			key, ok := strings.CutPrefix(path, prefix)
			if _, differs := changed[strings.TrimSuffix(key, "']")]; ok && differs {
				return path
			}
		}
	}
	return ""
}

// overlay returns the change with what other changes taking effect.
func (c *Change) overlay(other *Change) *Change {
	maps.Copy(c.Images, other.Images)
	maps.Copy(c.Resources, other.Resources)
	maps.Copy(c.Labels, other.Labels)
	maps.Copy(c.Annotations, other.Annotations)
	return c
}

// difference returns the keys to set, and those to remove with the value nil.
func difference(from, to map[string]string) map[string]*string {
	changed := map[string]*string{}
	for key, value := range to {
		if old, ok := from[key]; !ok || old != value {
			changed[key] = &value
		}
	}
	for key := range from {
		if _, ok := to[key]; !ok {
			changed[key] = nil
		}
	}
	return changed
}

// container returns the container of the pod's spec with the name, nil if it has none.
func container(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}
