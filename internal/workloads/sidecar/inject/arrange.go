// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

// place is where a container of a set belongs.
type place struct {
	before bool
	// key and index order the containers on the same side.
	key   string
	index int
}

// arrange puts what the known sets have injected in its order: init containers by name, containers by the
// name of the set and their order in it, volumes and pull secrets by name, behind those of the pod.
func (i *injection) arrange(known Known) {
	revisions := []*Revision{i.revision}
	for _, set := range i.stamps.names {
		if other := known(set, i.stamps.hashes[set].SidecarSetControllerRevision); other != nil && set != i.revision.Set {
			revisions = append(revisions, other)
		}
	}
	initPlaces, places := map[string]place{}, map[string]place{}
	secrets, defined := map[string]bool{}, map[string]*corev1.Volume{}
	for _, r := range revisions {
		for j := range r.InitContainers {
			c := &r.InitContainers[j]
			initPlaces[c.Name] = place{before: c.PodInjectPolicy == v1alpha1.BeforeAppContainerType, key: c.Name}
		}
		for j := range r.Containers {
			c := &r.Containers[j]
			places[c.Name] = place{before: c.PodInjectPolicy != v1alpha1.AfterAppContainerType, key: r.Set, index: j}
		}
		for _, secret := range r.ImagePullSecrets {
			secrets[secret.Name] = true
		}
		for _, volume := range r.mounted() {
			defined[volume.Name] = volume
		}
	}
	spec := &i.pod.Spec
	spec.InitContainers = arranged(spec.InitContainers, initPlaces)
	spec.Containers = arranged(spec.Containers, places)
	volumes := map[string]bool{}
	for j := range spec.Volumes {
		v := &spec.Volumes[j]
		volumes[v.Name] = defined[v.Name] != nil && template.EqualVolumes(v, defined[v.Name])
	}
	last(spec.ImagePullSecrets, secrets, func(s *corev1.LocalObjectReference) string { return s.Name })
	last(spec.Volumes, volumes, func(v *corev1.Volume) string { return v.Name })
}

// arranged returns the containers in their order. A container without a place keeps it.
func arranged(containers []corev1.Container, places map[string]place) []corev1.Container {
	rank := func(c *corev1.Container) (int, place) {
		at, found := places[c.Name]
		switch {
		case !found || !isInjected(c):
			return 0, place{}
		case at.before:
			return -1, at
		default:
			return 1, at
		}
	}
	slices.SortStableFunc(containers, func(a, b corev1.Container) int {
		side, at := rank(&a)
		other, of := rank(&b)
		return cmp.Or(side-other, strings.Compare(at.key, of.key), at.index-of.index)
	})
	return containers
}

// last moves the elements that were injected behind the others, and orders them by name.
func last[T any](elements []T, injected map[string]bool, nameOf func(*T) string) {
	slices.SortStableFunc(elements, func(a, b T) int {
		name, other := nameOf(&a), nameOf(&b)
		switch {
		case injected[name] && injected[other]:
			return strings.Compare(name, other)
		case injected[name]:
			return 1
		case injected[other]:
			return -1
		}
		return 0
	})
}

// mounted returns the volumes that the containers of the revision mount or have as devices.
func (r *Revision) mounted() []*corev1.Volume {
	used := map[string]bool{}
	for _, list := range [][]v1alpha1.SidecarContainer{r.InitContainers, r.Containers} {
		for j := range list {
			for _, mount := range list[j].VolumeMounts {
				used[mount.Name] = true
			}
			for _, device := range list[j].VolumeDevices {
				used[device.Name] = true
			}
		}
	}
	var found []*corev1.Volume
	for j := range r.Volumes {
		if used[r.Volumes[j].Name] {
			found = append(found, &r.Volumes[j])
		}
	}
	return found
}

// addVolumes adds the volumes that the pod lacks.
func (i *injection) addVolumes() {
	for _, volume := range i.revision.mounted() {
		at := slices.IndexFunc(i.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name })
		switch {
		case at < 0:
			i.pod.Spec.Volumes = append(i.pod.Spec.Volumes, *volume.DeepCopy())
		case !template.EqualVolumes(&i.pod.Spec.Volumes[at], volume):
			i.warn("the pod has another volume %q, which the containers of the set mount instead", volume.Name)
		}
	}
}

// unite adds the secrets that the pod lacks.
func unite(secrets, more []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, secret := range more {
		if !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
