// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environ works out what a container's process is given: its environment, and its
// command with references filled in. It follows the rules that Kubernetes documents for
// env, envFrom and $(VAR), and is pure.
//
// A process gets these, a later one overriding an earlier one of the same name:
//
//   - what every program needs of the machine: PATH, HOME and the like;
//   - HOSTNAME, the pod's name, and TMPDIR, a folder that is empty at each start of the
//     container, as the file system of a container is;
//   - the variables of envFrom, then those of env;
//   - for each volume that the container mounts, SEAMARK_VOLUME_<NAME>, where the volume
//     is. A manifest may give the same variable with the mount path as its value, and so
//     run the same command here and in a cluster.
package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sources are what a container's environment is made from.
type Sources struct {
	// Pod is the pod, with its addresses in its status.
	Pod *corev1.Pod
	// ConfigMaps and Secrets are those that there are.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Secrets    map[types.NamespacedName]*corev1.Secret
	// Base is what the machine gives to every container.
	Base map[string]string
	// Volumes are the folders of the pod's volumes, by the volume's name.
	Volumes map[string]string
	// TempDir is the container's TMPDIR.
	TempDir string
}

// Environment is what a process is started with.
type Environment struct {
	// Variables are its variables, by name.
	Variables map[string]string
	// Command is the program and its arguments.
	Command []string
}

// List returns the variables as name=value, by name.
func (e Environment) List() []string {
	list := make([]string, 0, len(e.Variables))
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		list = append(list, name+"="+e.Variables[name])
	}
	return list
}

// VolumeVariable returns the name of the variable that says where a volume is.
func VolumeVariable(volume string) string {
	return "SEAMARK_VOLUME_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(volume))
}

// For works out what a container is started with. The error names a reference that can't
// be followed.
func For(container *corev1.Container, sources Sources) (Environment, error) {
	volumes := map[string]string{}
	for _, mount := range container.VolumeMounts {
		if folder, found := sources.Volumes[mount.Name]; found {
			volumes[VolumeVariable(mount.Name)] = folder
		}
	}
	declared, err := declaredBy(container, sources, volumes)
	if err != nil {
		return Environment{}, err
	}
	variables := maps.Clone(sources.Base)
	if variables == nil {
		variables = map[string]string{}
	}
	variables["HOSTNAME"] = sources.Pod.Name
	variables["TMPDIR"] = sources.TempDir
	maps.Copy(variables, declared)
	maps.Copy(variables, volumes)

	// Only what the pod itself declares can be referred to, as in a cluster.
	maps.Copy(declared, volumes)
	var command []string
	for _, word := range slices.Concat(container.Command, container.Args) {
		command = append(command, Expand(word, declared))
	}
	return Environment{Variables: variables, Command: command}, nil
}

// Static fills in the references of a probe's command, as the kubelet does: only to
// variables whose values stand in the pod.
func Static(command []string, env []corev1.EnvVar) []string {
	values := map[string]string{}
	for i := range env {
		if env[i].ValueFrom == nil {
			values[env[i].Name] = env[i].Value
		}
	}
	out := make([]string, len(command))
	for i, word := range command {
		out[i] = Expand(word, values)
	}
	return out
}

// declaredBy returns the variables of envFrom and env. A value refers to those before it.
func declaredBy(container *corev1.Container, sources Sources, fixed map[string]string) (map[string]string, error) {
	declared := map[string]string{}
	for i := range container.EnvFrom {
		if err := addAll(declared, &container.EnvFrom[i], sources); err != nil {
			return nil, fmt.Errorf("envFrom[%d]: %w", i, err)
		}
	}
	known := maps.Clone(declared)
	maps.Copy(known, fixed)
	for i := range container.Env {
		variable := &container.Env[i]
		value, found, err := valueOf(variable, sources, known)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", variable.Name, err)
		}
		if !found {
			continue
		}
		declared[variable.Name] = value
		if _, taken := fixed[variable.Name]; !taken {
			known[variable.Name] = value
		}
	}
	return declared, nil
}

// addAll adds the keys of a config map or secret that can be names of variables.
func addAll(declared map[string]string, from *corev1.EnvFromSource, sources Sources) error {
	add := func(key, value string) {
		if name := from.Prefix + key; name != "" && !strings.ContainsAny(name, "=\x00") {
			declared[name] = value
		}
	}
	switch {
	case from.ConfigMapRef != nil:
		object, found := sources.ConfigMaps[sources.named(from.ConfigMapRef.Name)]
		if !found {
			return missing("ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
		for key, value := range object.Data {
			add(key, value)
		}
	case from.SecretRef != nil:
		object, found := sources.Secrets[sources.named(from.SecretRef.Name)]
		if !found {
			return missing("Secret", from.SecretRef.Name, from.SecretRef.Optional)
		}
		for key, value := range object.Data {
			add(key, string(value))
		}
	}
	return nil
}

// valueOf returns a variable's value, and false where an optional source has none.
func valueOf(variable *corev1.EnvVar, sources Sources, known map[string]string) (string, bool, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return Expand(variable.Value, known), true, nil
	case from.FieldRef != nil:
		value, err := FieldValue(sources.Pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		if object, found := sources.ConfigMaps[sources.named(ref.Name)]; found {
			if value, has := object.Data[ref.Key]; has {
				return value, true, nil
			}
		}
		return "", false, missing("ConfigMap", ref.Name+" with key "+ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		if object, found := sources.Secrets[sources.named(ref.Name)]; found {
			if value, has := object.Data[ref.Key]; has {
				return string(value), true, nil
			}
		}
		return "", false, missing("Secret", ref.Name+" with key "+ref.Key, ref.Optional)
	}
	// What a local run can't give, such as a resource's limit, stays unset.
	return "", false, nil
}

// named returns the key of an object beside the pod.
func (s Sources) named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Pod.Namespace, Name: name}
}

// missing is nil where the reference is optional.
func missing(kind, name string, optional *bool) error {
	if optional != nil && *optional {
		return nil
	}
	return fmt.Errorf("there is no %s %s", kind, name)
}
