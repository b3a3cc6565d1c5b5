// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environ computes the environment and the command of a container's process. It
// follows the rules that Kubernetes documents for env, envFrom and $(VAR), and is pure.
//
// A process gets these variables. If a name occurs twice, the later one takes effect:
//
//   - the variables that programs need on the machine, such as PATH and HOME;
//   - HOSTNAME, the pod's name, and TMPDIR, a folder that is empty at each start of the
//     container, as the file system of a container is;
//   - the variables of envFrom, then those of env;
//   - for each volume that the container mounts, SEAMARK_VOLUME_<NAME>, the folder of the
//     volume. A manifest can set the same variable to the mount path, so that the same
//     command runs locally and in a cluster.
package environ

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sources are the inputs of a container's environment.
type Sources struct {
	// Pod is the pod. Its status has its addresses.
	Pod *corev1.Pod
	// ConfigMaps and Secrets are the objects that the pod can refer to.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Secrets    map[types.NamespacedName]*corev1.Secret
	// Base are the variables of the machine that every container gets.
	Base map[string]string
	// Volumes are the folders of the pod's volumes by the volume's name.
	Volumes map[string]string
	// TempDir is the container's TMPDIR.
	TempDir string
}

// Environment is the environment and the command of a process.
type Environment struct {
	// Variables are its variables by name.
	Variables map[string]string
	// Command is the program and its arguments.
	Command []string
}

// List returns the variables as name=value, sorted by name.
func (e Environment) List() []string {
	list := make([]string, 0, len(e.Variables))
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		list = append(list, name+"="+e.Variables[name])
	}
	return list
}

// VolumeVariable returns the name of the variable that has a volume's folder.
func VolumeVariable(volume string) string {
	return "SEAMARK_VOLUME_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(volume))
}

// For returns the environment of a container. A reference to something that does not exist is left
// out: package manifest refuses it unless it is optional.
func For(container *corev1.Container, sources Sources) Environment {
	volumes := volumesOf(container, sources.Volumes)
	declared := declaredBy(container, sources, volumes)
	variables := maps.Clone(sources.Base)
	if variables == nil {
		variables = map[string]string{}
	}
	variables["HOSTNAME"] = sources.Pod.Name
	variables["TMPDIR"] = sources.TempDir
	maps.Copy(variables, declared)
	maps.Copy(variables, volumes)

	// As in a cluster, a reference can only name a variable that the pod declares.
	maps.Copy(declared, volumes)
	var command []string
	for _, word := range slices.Concat(container.Command, container.Args) {
		command = append(command, Expand(word, declared))
	}
	return Environment{Variables: variables, Command: command}
}

// volumesOf returns the variables of the volumes that the container mounts. folders are those of the pod's volumes by name.
func volumesOf(container *corev1.Container, folders map[string]string) map[string]string {
	variables := map[string]string{}
	for _, mount := range container.VolumeMounts {
		if folder, found := folders[mount.Name]; found {
			variables[VolumeVariable(mount.Name)] = folder
		}
	}
	return variables
}

// Static expands the references in a probe's command. As in the kubelet, a reference can
// only name a variable whose value is literal, or that of a volume. folders are those of the pod's volumes by name.
func Static(command []string, container *corev1.Container, folders map[string]string) []string {
	values := map[string]string{}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			values[variable.Name] = variable.Value
		}
	}
	maps.Copy(values, volumesOf(container, folders))
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = Expand(word, values)
	}
	return out
}

// declaredBy returns the variables of envFrom and env. A value can refer to the variables
// before it.
func declaredBy(container *corev1.Container, sources Sources, fixed map[string]string) map[string]string {
	declared := map[string]string{}
	for i := range container.EnvFrom {
		from := &container.EnvFrom[i]
		for key, value := range sources.all(from) {
			// Other keys cannot be names of variables.
			if name := from.Prefix + key; name != "" && !strings.ContainsAny(name, "=\x00") {
				declared[name] = value
			}
		}
	}
	known := maps.Clone(declared)
	maps.Copy(known, fixed)
	for i := range container.Env {
		variable := &container.Env[i]
		value, found := valueOf(variable, sources, known)
		if !found {
			continue
		}
		declared[variable.Name] = value
		if _, taken := fixed[variable.Name]; !taken {
			known[variable.Name] = value
		}
	}
	return declared
}

// all returns the keys and values of a config map or secret.
func (s Sources) all(from *corev1.EnvFromSource) map[string]string {
	switch {
	case from.ConfigMapRef != nil:
		return s.configMap(from.ConfigMapRef.Name)
	case from.SecretRef != nil:
		return s.secret(from.SecretRef.Name)
	}
	return nil
}

func (s Sources) configMap(name string) map[string]string {
	if object := s.ConfigMaps[types.NamespacedName{Namespace: s.Pod.Namespace, Name: name}]; object != nil {
		return object.Data
	}
	return nil
}

func (s Sources) secret(name string) map[string]string {
	values := map[string]string{}
	if object := s.Secrets[types.NamespacedName{Namespace: s.Pod.Namespace, Name: name}]; object != nil {
		for key, value := range object.Data {
			values[key] = string(value)
		}
	}
	return values
}

// valueOf returns a variable's value. It returns false if its source has none, such as a resource limit,
// which a local run does not have.
func valueOf(variable *corev1.EnvVar, sources Sources, known map[string]string) (value string, found bool) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return Expand(variable.Value, known), true
	case from.FieldRef != nil:
		value, err := FieldValue(sources.Pod, from.FieldRef.FieldPath)
		return value, err == nil
	case from.ConfigMapKeyRef != nil:
		value, found = sources.configMap(from.ConfigMapKeyRef.Name)[from.ConfigMapKeyRef.Key]
	case from.SecretKeyRef != nil:
		value, found = sources.secret(from.SecretKeyRef.Name)[from.SecretKeyRef.Key]
	}
	return value, found
}
