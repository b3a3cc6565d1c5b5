// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// share adds to the containers of the set what they share with the containers of the pod that no set has
// injected, and the variables that are transferred to them.
func (i *injection) share() {
	var own []*corev1.Container
	for j := range i.pod.Spec.Containers {
		if c := &i.pod.Spec.Containers[j]; !isInjected(c) {
			own = append(own, c)
		}
	}
	byName := make(map[string]*v1alpha1.SidecarContainer)
	for _, list := range [][]v1alpha1.SidecarContainer{i.revision.InitContainers, i.revision.Containers} {
		for j := range list {
			byName[list[j].Name] = &list[j]
		}
	}
	for _, c := range containersOf(i.pod) {
		from := byName[c.Name]
		if from == nil || !isInjected(c) {
			continue
		}
		// A variable that the set names takes precedence over one of the same name that a mount needs.
		for _, transfer := range from.TransferEnv {
			i.transfer(c, transfer)
		}
		if from.ShareVolumePolicy.Type == v1alpha1.ShareVolumePolicyEnabled {
			shareMounts(c, own)
		}
		if from.ShareVolumeDevicePolicy != nil && from.ShareVolumeDevicePolicy.Type == v1alpha1.ShareVolumePolicyEnabled {
			shareDevices(c, own)
		}
	}
}

// shareMounts adds the mounts of the containers at paths that are not used yet, and the variables in
// their subPathExpr.
func shareMounts(to *corev1.Container, own []*corev1.Container) {
	for _, c := range own {
		for _, mount := range c.VolumeMounts {
			if slices.ContainsFunc(to.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
				continue
			}
			to.VolumeMounts = append(to.VolumeMounts, *mount.DeepCopy())
			copyEnv(to, c, references(mount.SubPathExpr))
		}
	}
}

// shareDevices adds the block devices of the containers at paths that are not used yet.
func shareDevices(to *corev1.Container, own []*corev1.Container) {
	for _, c := range own {
		for _, device := range c.VolumeDevices {
			if !slices.ContainsFunc(to.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.DevicePath == device.DevicePath }) {
				to.VolumeDevices = append(to.VolumeDevices, device)
			}
		}
	}
}

// transfer adds variables of one of the pod's containers.
func (i *injection) transfer(to *corev1.Container, transfer v1alpha1.TransferEnvVar) {
	name := transfer.SourceContainerName
	if from := transfer.SourceContainerNameFrom; from != nil && from.FieldRef != nil {
		var found bool
		if name, found = field(i.pod, from.FieldRef.FieldPath); !found {
			i.warn("container %s gets no variables: the pod has no %s", to.Name, from.FieldRef.FieldPath)
			return
		}
	}
	at := slices.IndexFunc(containersOf(i.pod), func(c *corev1.Container) bool { return c.Name == name && !isInjected(c) })
	if at < 0 {
		i.warn("container %s gets no variables: the pod has no container %q", to.Name, name)
		return
	}
	names := slices.Clone(transfer.EnvNames)
	if transfer.EnvName != "" {
		names = append(names, transfer.EnvName)
	}
	slices.Sort(names)
	source := containersOf(i.pod)[at]
	for _, variable := range names {
		if indexEnv(source.Env, variable) < 0 {
			i.warn("container %s gets no variable %s: container %q does not have it", to.Name, variable, name)
		}
	}
	copyEnv(to, source, names)
}

// copyEnv copies the variables that the container lacks, in the order of the names, each behind those to which its value
// refers: the kubelet expands references to earlier variables only. If the source has a name several times, the last one
// counts, as for the kubelet.
func copyEnv(to, source *corev1.Container, names []string) {
	var add func(name string, earlier []corev1.EnvVar)
	add = func(name string, earlier []corev1.EnvVar) {
		if indexEnv(to.Env, name) >= 0 {
			return
		}
		for at, v := range slices.Backward(earlier) {
			if v.Name != name {
				continue
			}
			for _, other := range references(v.Value) {
				add(other, earlier[:at])
			}
			to.Env = append(to.Env, *v.DeepCopy())
			return
		}
	}
	for _, name := range names {
		add(name, source.Env)
	}
}

// references returns the names of the variables in a value, such as A in "x/$(A)". "$$(A)" is no
// reference.
func references(value string) []string {
	var names []string
	for {
		at := strings.IndexByte(value, '$')
		if at < 0 || at+1 == len(value) {
			return names
		}
		rest := value[at+2:]
		if value[at+1] == '(' {
			if name, after, closed := strings.Cut(rest, ")"); closed {
				names, rest = append(names, name), after
			}
		}
		value = rest
	}
}

// field returns the label or annotation of the pod at the path, such as metadata.labels['app'].
func field(pod *corev1.Pod, path string) (string, bool) {
	for prefix, values := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, found := strings.CutPrefix(path, prefix); found {
			value, found := values[strings.TrimSuffix(key, "']")]
			return value, found
		}
	}
	return "", false
}
