// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inject adds the containers of a revision of a SidecarSet to a pod that is being created. It is
// pure: the time of the admission is an argument.
//
// Invariants:
//   - The order of the containers, volumes and pull secrets depends only on names, and not on the order in
//     which the sets of a pod are injected.
//   - A pod that has the set already changes only if another webhook has added mounts, devices or
//     variables to share since. It has it if its containers have the images, commands and arguments of the
//     revision that it names.
//   - No container, volume, annotation or variable of the pod is replaced, except annotations that a set
//     overwrites or merges.
package inject

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Revision is an accepted revision of a set.
type Revision struct {
	// Set is the name of the set, and Name that of the ControllerRevision.
	Set, Name string
	// Hash and HashWithoutImage are the hashes of the containers.
	Hash, HashWithoutImage string
	// Containers and InitContainers are the containers. Their names are unique.
	Containers, InitContainers []v1alpha1.SidecarContainer
	// Volumes are those that the containers may mount.
	Volumes []corev1.Volume
	// ImagePullSecrets are added to those of the pod.
	ImagePullSecrets []corev1.LocalObjectReference
	// PatchPodMetadata are the annotations.
	PatchPodMetadata []v1alpha1.SidecarSetPatchPodMetadata
}

// Known returns the revision of a set with the name, or nil if it is not known.
type Known func(set, revision string) *Revision

// RefusedError means that the pod cannot have the set.
type RefusedError struct {
	// Set is the name of the set, Reason the cause and what helps.
	Set, Reason string
}

// Error describes the cause.
func (e *RefusedError) Error() string { return fmt.Sprintf("SidecarSet %s: %s", e.Set, e.Reason) }

// Inject returns the pod with the revision, and warnings for its user. The error is a RefusedError. known
// finds the other sets that the pod has: the containers of those that it does not know keep their
// places.
func Inject(pod *corev1.Pod, revision *Revision, known Known, at metav1.Time) (*corev1.Pod, []string, error) {
	if reason := tooLarge(pod); reason != "" {
		return nil, nil, &RefusedError{revision.Set, reason}
	}
	i := &injection{pod: pod.DeepCopy(), revision: revision, stamps: parseStamps(pod)}
	added, err := i.addContainers(known)
	if err != nil {
		return nil, nil, err
	}
	i.share()
	if !added {
		return i.pod, i.warnings, nil
	}
	i.addVolumes()
	i.pod.Spec.ImagePullSecrets = unite(i.pod.Spec.ImagePullSecrets, revision.ImagePullSecrets)
	i.patchMetadata()
	i.stamp(at)
	i.arrange(known)
	return i.pod, i.warnings, nil
}

// injection is the injection of one revision into one pod.
type injection struct {
	pod      *corev1.Pod
	revision *Revision
	// stamps are what the annotations say about the sets of the pod, before the injection.
	stamps   stamps
	warnings []string
}

func (i *injection) warn(format string, args ...any) {
	warning := fmt.Sprintf("SidecarSet %s: ", i.revision.Set) + fmt.Sprintf(format, args...)
	if !slices.Contains(i.warnings, warning) {
		i.warnings = append(i.warnings, warning)
	}
}

// addContainers adds the containers, without what they share, unless the pod has all of them. A pod that was
// copied from an injected one, and lacks some, gets all of them new: it has one revision only.
func (i *injection) addContainers(known Known) (added bool, err error) {
	listed, present := i.stamps.lists(i.revision.Set), 0
	for _, c := range containersOf(i.pod) {
		if !i.revision.hasContainer(c.Name) {
			continue
		}
		if !listed || !isInjected(c) {
			return false, &RefusedError{i.revision.Set, fmt.Sprintf("the pod has a container %q of its own, as the set has: "+
				"rename one of them, or exclude the pod from the selector of the set", c.Name)}
		}
		present++
	}
	spec := &i.pod.Spec
	if present == len(i.revision.InitContainers)+len(i.revision.Containers) {
		if kept, err := i.keep(known); kept || err != nil {
			return false, err
		}
	}
	former := i.former(known)
	earlier := func(c corev1.Container) bool {
		return i.revision.hasContainer(c.Name) || former[c.Name] && isInjected(&c)
	}
	spec.InitContainers, spec.Containers = slices.DeleteFunc(spec.InitContainers, earlier), slices.DeleteFunc(spec.Containers, earlier)
	for j := range i.revision.InitContainers {
		spec.InitContainers = append(spec.InitContainers, build(&i.revision.InitContainers[j]))
	}
	for j := range i.revision.Containers {
		spec.Containers = append(spec.Containers, build(&i.revision.Containers[j]))
	}
	if policy := spec.RestartPolicy; len(i.revision.Containers) > 0 && policy != "" && policy != corev1.RestartPolicyAlways {
		i.warn("the pod has restartPolicy %s, and ends only when its containers do: use init containers with restartPolicy Always", policy)
	}
	return true, nil
}

// former returns the container names of the revision that the pod names. The value is false if a revision of another set on the
// pod has the name, too: everybody can write the annotation.
func (i *injection) former(known Known) map[string]bool {
	names := map[string]bool{}
	for _, set := range i.stamps.names {
		revision := known(set, i.stamps.hashes[set].SidecarSetControllerRevision)
		if revision == nil {
			continue
		}
		for _, list := range [][]v1alpha1.SidecarContainer{revision.InitContainers, revision.Containers} {
			for j := range list {
				name, isOwn := list[j].Name, set == i.revision.Set
				_, found := names[name]
				names[name] = isOwn && (!found || names[name])
			}
		}
	}
	return names
}

// build returns the container, marked as injected.
func build(from *v1alpha1.SidecarContainer) corev1.Container {
	c := *from.Container.DeepCopy()
	mark := corev1.EnvVar{Name: v1alpha1.SidecarInjectedEnv, Value: "true"}
	if at := indexEnv(c.Env, mark.Name); at >= 0 {
		c.Env[at] = mark
	} else {
		c.Env = append(c.Env, mark)
	}
	return c
}

// hasContainer reports whether the revision has a container with the name.
func (r *Revision) hasContainer(name string) bool {
	named := func(c v1alpha1.SidecarContainer) bool { return c.Name == name }
	return slices.ContainsFunc(r.Containers, named) || slices.ContainsFunc(r.InitContainers, named)
}

// IsNative reports whether the init container is a native sidecar.
func IsNative(c *v1alpha1.SidecarContainer) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containersOf returns all containers of the pod.
func containersOf(pod *corev1.Pod) []*corev1.Container {
	var found []*corev1.Container
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			found = append(found, &list[i])
		}
	}
	return found
}

// isInjected reports whether the container is that of a set.
func isInjected(c *corev1.Container) bool {
	at := indexEnv(c.Env, v1alpha1.SidecarInjectedEnv)
	return at >= 0 && c.Env[at].Value == "true"
}

func indexEnv(env []corev1.EnvVar, name string) int {
	return slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == name })
}
