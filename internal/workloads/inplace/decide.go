// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

// The fields of a pod's metadata that the environment of a container can refer to by key.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

// RestartedAt is the annotation with which `kubectl rollout restart` and `seamark rollout restart` request new pods. Its removal,
// for example because an earlier template is applied, requests none.
const RestartedAt = "kubectl.kubernetes.io/restartedAt"

// Difference is what differs between the pod templates of two revisions. It is the same for all pods
// of a revision, so it is computed once per step.
type Difference struct {
	labels, annotations map[string]*string
	containers          []containerDifference
	// why is why no pod can be updated in place, empty if that depends on the pod.
	why string
}

// containerDifference are the images and resources of a container in both templates.
type containerDifference struct {
	name            string
	image           string
	newImage        bool
	from, resources corev1.ResourceRequirements
	newResources    bool
}

// Between returns what differs between the pods that Kubernetes makes of the templates: values that
// only one of them spells out, and that are the default, are no difference. Neither is a pull policy that
// is a default, if the new template sets none: a pod that is updated in place keeps its policy.
func Between(from, to *corev1.PodTemplateSpec) *Difference {
	d := &Difference{
		labels:      difference(from.Labels, to.Labels),
		annotations: difference(from.Annotations, to.Annotations),
	}
	before, after := &template.WithDefaults(from).Spec, &template.WithDefaults(to).Spec
	if len(before.Containers) != len(after.Containers) {
		d.why = "the number of containers changes"
		return d
	}
	for i := range before.Containers {
		old, wanted := &before.Containers[i], &after.Containers[i]
		if old.Name != wanted.Name {
			d.why = fmt.Sprintf("container %s is not at the same place", wanted.Name)
			return d
		}
		if template.KeepsPullPolicy(&from.Spec.Containers[i], &to.Spec.Containers[i]) {
			old.ImagePullPolicy = wanted.ImagePullPolicy
		}
		d.containers = append(d.containers, containerDifference{
			name: wanted.Name, image: wanted.Image, newImage: old.Image != wanted.Image,
			from: old.Resources, resources: wanted.Resources,
			newResources: !equality.Semantic.DeepEqual(old.Resources, wanted.Resources),
		})
		old.Image, old.Resources = wanted.Image, wanted.Resources
	}
	if field := differentField(before, after); field != "" {
		d.why = "spec." + field + " changes"
	} else if d.annotations[RestartedAt] != nil {
		d.why = "the annotation " + RestartedAt + " requests new pods"
	} else {
		d.why = metadata(from, to)
	}
	return d
}

// Decide returns the change that updates the pod in place. If this is not possible, the change is nil
// and the text says why.
//
// The change is the difference of the templates, not of the pod and the template: what admission
// webhooks changed in the pod stays. What a previous update has not written to the containers yet,
// because of its grace period or a crash, is included.
func (d *Difference) Decide(pod *corev1.Pod) (*Change, string) {
	if d.why != "" {
		return nil, d.why
	}
	change := unwritten(pod)
	maps.Copy(change.Labels, d.labels)
	maps.Copy(change.Annotations, d.annotations)
	for i := range d.containers {
		if why := change.add(pod, &d.containers[i]); why != "" {
			return nil, why
		}
	}
	var parts []*Change
	if len(change.Resources) > 0 { // The order matters only for what depends on resources.
		parts = change.inBatches(pod)
	}
	if why := change.environment(pod, parts); why != "" {
		return nil, why
	}
	if why := qos(pod, parts); why != "" {
		return nil, why
	}
	return change, ""
}

// add adds what differs in the container, and what a previous update has not written to it.
func (c *Change) add(pod *corev1.Pod, d *containerDifference) string {
	_, imagePending := c.Images[d.name]
	_, resourcesPending := c.Resources[d.name]
	imagePending, resourcesPending = imagePending || d.newImage, resourcesPending || d.newResources
	if !imagePending && !resourcesPending {
		return ""
	}
	spec := container(pod, d.name)
	if spec == nil {
		return fmt.Sprintf("the pod does not have container %s", d.name)
	}
	if imagePending {
		if d.image == "" {
			return fmt.Sprintf("container %s has no image", d.name)
		}
		c.Images[d.name] = d.image
	}
	if resourcesPending {
		target, why := resize(d.name, c.Resources[d.name], d.from, d.resources)
		if why != "" {
			return why
		}
		c.Resources[d.name] = target
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

// environment reports a container that refers to what changes in its environment and is not restarted
// by the change, or before what it refers to changes: it would keep the old value.
func (c *Change) environment(pod *corev1.Pod, parts []*Change) string {
	for i := range pod.Spec.InitContainers {
		always := corev1.ContainerRestartPolicyAlways
		if p := pod.Spec.InitContainers[i].RestartPolicy; p == nil || *p != always {
			continue
		}
		if source := c.refers(pod, &pod.Spec.InitContainers[i]); source != "" {
			return fmt.Sprintf("container %s refers to %s", pod.Spec.InitContainers[i].Name, source)
		}
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		if !c.restarts(spec) {
			if source := c.refers(pod, spec); source != "" {
				return fmt.Sprintf("container %s refers to %s", spec.Name, source)
			}
			continue
		}
		restarted := slices.IndexFunc(parts, func(part *Change) bool { return part.restarts(spec) })
		for _, later := range parts[restarted+1:] {
			if source := later.refers(pod, spec); source != "" {
				return fmt.Sprintf("container %s refers to %s, which changes after its restart", spec.Name, source)
			}
		}
	}
	return ""
}

// missing returns the images and resources of the change that the pod's specification does not have.
func (c *Change) missing(pod *corev1.Pod) (map[string]string, map[string]corev1.ResourceRequirements) {
	images, resources := map[string]string{}, map[string]corev1.ResourceRequirements{}
	for name, image := range c.Images {
		if spec := container(pod, name); spec != nil && image != "" && spec.Image != image {
			images[name] = image
		}
	}
	for name, wanted := range c.Resources {
		if spec := container(pod, name); spec != nil && !applied(spec, wanted) {
			resources[name] = wanted
		}
	}
	return images, resources
}

// TakesDown reports whether the change takes the pod out of service: it restarts a container that the annotation
// InServiceContainersKey does not name.
func (c *Change) TakesDown(pod *corev1.Pod) bool {
	names := pod.Annotations[pub.InServiceContainersKey]
	if value, changes := c.Annotations[pub.InServiceContainersKey]; changes {
		names = ptr.Deref(value, "")
	}
	inService := strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.ContainsFunc(pod.Spec.Containers, func(spec corev1.Container) bool {
		return c.restarts(&spec) && !slices.Contains(inService, spec.Name)
	})
}

// Restarts reports whether the change restarts a container.
func (c *Change) Restarts(pod *corev1.Pod) bool {
	restarts := func(spec corev1.Container) bool { return c.restarts(&spec) }
	return slices.ContainsFunc(pod.Spec.Containers, restarts) || slices.ContainsFunc(pod.Spec.InitContainers, restarts)
}

// restarts reports whether the change restarts the container: its image changes, or a resource whose
// resize policy requires it.
func (c *Change) restarts(spec *corev1.Container) bool {
	if image, ok := c.Images[spec.Name]; ok && image != spec.Image {
		return true
	}
	wanted, ok := c.Resources[spec.Name]
	return ok && slices.ContainsFunc(spec.ResizePolicy, func(policy corev1.ContainerResizePolicy) bool {
		return policy.RestartPolicy == corev1.RestartContainer && resizes(spec, wanted, policy.ResourceName)
	})
}

// refers returns what changes in the environment of the container: the field path of a label or an
// annotation, or a resource.
func (c *Change) refers(pod *corev1.Pod, spec *corev1.Container) string {
	for i := range spec.Env {
		source := spec.Env[i].ValueFrom
		switch {
		case source == nil:
		case source.FieldRef != nil && c.changesField(source.FieldRef.FieldPath):
			return source.FieldRef.FieldPath
		case source.ResourceFieldRef != nil:
			name := cmp.Or(source.ResourceFieldRef.ContainerName, spec.Name)
			_, resource, _ := strings.Cut(source.ResourceFieldRef.Resource, ".")
			current, wanted := container(pod, name), c.Resources[name]
			if current != nil && resizes(current, wanted, corev1.ResourceName(resource)) {
				return fmt.Sprintf("%s of container %s", source.ResourceFieldRef.Resource, name)
			}
		}
	}
	return ""
}

// changesField reports whether the field path is that of a label or an annotation that changes.
func (c *Change) changesField(path string) bool {
	field, key := metadataKey(path)
	_, differs := map[string]map[string]*string{labelsField: c.Labels, annotationsField: c.Annotations}[field][key]
	return differs
}

// metadataKey returns the key of the label or the annotation that the field path refers to, and which
// of both it is. The results are empty if it refers to something else.
func metadataKey(path string) (field, key string) {
	for _, field := range []string{labelsField, annotationsField} {
		if rest, ok := strings.CutPrefix(path, "metadata."+field+"['"); ok {
			return field, strings.TrimSuffix(rest, "']")
		}
	}
	return "", ""
}

// fieldPaths returns the paths of the pod's fields that the environment of the container refers to.
func fieldPaths(spec *corev1.Container) []string {
	var paths []string
	for i := range spec.Env {
		if source := spec.Env[i].ValueFrom; source != nil && source.FieldRef != nil {
			paths = append(paths, source.FieldRef.FieldPath)
		}
	}
	return paths
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

// differentField returns the path of a field that differs in the specs, empty if they mean the same.
func differentField(a, b *corev1.PodSpec) string {
	if equality.Semantic.DeepEqual(a, b) {
		return ""
	}
	if len(a.Containers) == len(b.Containers) {
		for i := range a.Containers {
			if name := firstDifference(a.Containers[i], b.Containers[i]); name != "" {
				return "containers[" + a.Containers[i].Name + "]." + name
			}
		}
	}
	return firstDifference(*a, *b)
}

// firstDifference returns the JSON name of the first field that differs in the structs.
func firstDifference(a, b any) string {
	left, right := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range left.NumField() {
		if !equality.Semantic.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			name, _, _ := strings.Cut(left.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}
