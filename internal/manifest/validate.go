// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

type validator struct {
	pod     *corev1.Pod
	objects *Objects
	errs    field.ErrorList
}

// validatePod validates the fields that a local run uses, as an API server does. It also
// checks that the objects that the pod refers to exist. Paths begin with the path of the spec.
func validatePod(pod *corev1.Pod, spec *field.Path, objects *Objects) field.ErrorList {
	v := &validator{pod: pod, objects: objects}
	if len(pod.Spec.Containers) == 0 {
		v.add(field.Required(spec.Child("containers"), "a pod needs at least one container"))
	}
	v.spec(spec)
	return v.errs
}

// spec validates the spec of the pod.
func (v *validator) spec(spec *field.Path) {
	pod := v.pod
	v.oneOf(spec.Child("restartPolicy"), string(pod.Spec.RestartPolicy), "Always", "OnFailure", "Never")
	v.notNegative(spec.Child("terminationGracePeriodSeconds"), *pod.Spec.TerminationGracePeriodSeconds)
	for i, gate := range pod.Spec.ReadinessGates {
		v.each(spec.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType),
			validation.IsQualifiedName(string(gate.ConditionType)))
	}
	v.volumes(spec.Child("volumes"))
	names := sets.New[string]()
	for i := range pod.Spec.InitContainers {
		c, path := &pod.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		v.container(path, c, names)
		v.initContainer(path, c)
	}
	for i := range pod.Spec.Containers {
		v.container(spec.Child("containers").Index(i), &pod.Spec.Containers[i], names)
	}
}

func (v *validator) add(err *field.Error) { v.errs = append(v.errs, err) }

// each adds one error per message.
func (v *validator) each(path *field.Path, value any, messages []string) {
	for _, message := range messages {
		v.add(field.Invalid(path, value, message))
	}
}

func (v *validator) notNegative(path *field.Path, value int64) {
	if value < 0 {
		v.add(field.Invalid(path, value, "must be 0 or more"))
	}
}

func (v *validator) oneOf(path *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.add(field.NotSupported(path, value, allowed))
	}
}

// name checks that a name is valid and unique.
func (v *validator) name(path *field.Path, name string, seen sets.Set[string], messages []string) {
	v.each(path, name, messages)
	if seen.Has(name) {
		v.add(field.Duplicate(path, name))
	}
	seen.Insert(name)
}

func (v *validator) container(path *field.Path, c *corev1.Container, names sets.Set[string]) {
	v.name(path.Child("name"), c.Name, names, validation.IsDNS1123Label(c.Name))
	if len(c.Command) == 0 {
		v.add(field.Required(path.Child("command"),
			"images are not pulled: set the program to run, as a path or a name in PATH, and the same args as in the cluster, or specify --command "+c.Name+"='...'"))
	} else if c.Command[0] == "" {
		v.add(field.Invalid(path.Child("command").Index(0), "", "must be a program, as a path or a name in PATH"))
	}
	if c.RestartPolicy != nil {
		v.oneOf(path.Child("restartPolicy"), string(*c.RestartPolicy), "Always", "OnFailure", "Never")
	}
	v.ports(path.Child("ports"), c.Ports)
	for i := range c.Env {
		v.env(path.Child("env").Index(i), &c.Env[i])
	}
	for i := range c.EnvFrom {
		v.envFrom(path.Child("envFrom").Index(i), &c.EnvFrom[i])
	}
	v.mounts(path.Child("volumeMounts"), c.VolumeMounts)
	v.lifecycle(path.Child("lifecycle"), c.Lifecycle)
	v.probes(path, c)
}

// initContainer rejects the fields that only restartable init containers may have.
func (v *validator) initContainer(path *field.Path, c *corev1.Container) {
	if plan.Restartable(c) {
		return
	}
	for _, forbidden := range []struct {
		name string
		set  bool
	}{
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
	} {
		if forbidden.set {
			v.add(field.Forbidden(path.Child(forbidden.name), "may only be set on an init container with restartPolicy Always"))
		}
	}
}

func (v *validator) ports(path *field.Path, ports []corev1.ContainerPort) {
	names := sets.New[string]()
	for i, port := range ports {
		at := path.Index(i)
		v.each(at.Child("containerPort"), port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))
		if port.Name != "" {
			v.name(at.Child("name"), port.Name, names, validation.IsValidPortName(port.Name))
		}
		v.oneOf(at.Child("protocol"), string(port.Protocol), "", "TCP", "UDP", "SCTP")
	}
}

func (v *validator) env(path *field.Path, e *corev1.EnvVar) {
	if e.Name == "" {
		v.add(field.Required(path.Child("name"), "a variable needs a name"))
	}
	if e.ValueFrom == nil {
		return
	}
	from := path.Child("valueFrom")
	if e.Value != "" {
		v.add(field.Forbidden(from, "must not be set together with value"))
	}
	source := e.ValueFrom
	switch {
	case count(source.FieldRef != nil, source.ConfigMapKeyRef != nil, source.SecretKeyRef != nil,
		source.ResourceFieldRef != nil, source.FileKeyRef != nil) != 1:
		v.add(field.Invalid(from, "", "must have exactly one of fieldRef, configMapKeyRef and secretKeyRef"))
	case source.FieldRef != nil:
		if _, err := environ.FieldValue(v.pod, source.FieldRef.FieldPath); err != nil {
			v.add(field.Invalid(from.Child("fieldRef", "fieldPath"), source.FieldRef.FieldPath, err.Error()))
		}
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		v.configMap(from.Child("configMapKeyRef"), ref.Name, ref.Key, ref.Optional, false)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		v.secret(from.Child("secretKeyRef"), ref.Name, ref.Key, ref.Optional)
	}
}

// count returns how many of the conditions are true.
func count(conditions ...bool) int {
	return len(slices.DeleteFunc(conditions, func(is bool) bool { return !is }))
}

func (v *validator) envFrom(path *field.Path, source *corev1.EnvFromSource) {
	switch {
	case (source.ConfigMapRef == nil) == (source.SecretRef == nil):
		v.add(field.Invalid(path, "", "must have exactly one of configMapRef and secretRef"))
	case source.ConfigMapRef != nil:
		v.configMap(path.Child("configMapRef"), source.ConfigMapRef.Name, "", source.ConfigMapRef.Optional, false)
	default:
		v.secret(path.Child("secretRef"), source.SecretRef.Name, "", source.SecretRef.Optional)
	}
}

// configMap checks that a ConfigMap exists and, unless the key is empty, has the key, in its binary data
// only if this is allowed.
func (v *validator) configMap(path *field.Path, name, key string, optional *bool, allowBinary bool) {
	object, found := v.objects.ConfigMaps[types.NamespacedName{Namespace: v.pod.Namespace, Name: name}]
	has := false
	if found {
		_, text := object.Data[key]
		_, binary := object.BinaryData[key]
		has = text || binary && allowBinary
	}
	v.reference(path, "ConfigMap", name, key, optional, found, has)
}

// secret checks that a Secret exists and, unless the key is empty, has the key.
func (v *validator) secret(path *field.Path, name, key string, optional *bool) {
	object, found := v.objects.Secrets[types.NamespacedName{Namespace: v.pod.Namespace, Name: name}]
	has := false
	if found {
		_, has = object.Data[key]
	}
	v.reference(path, "Secret", name, key, optional, found, has)
}

func (v *validator) reference(path *field.Path, kind, name, key string, optional *bool, found, has bool) {
	switch {
	case optional != nil && *optional:
	case !found:
		v.add(field.Invalid(path.Child("name"), name, "no "+kind+" with this name in the given files"))
	case key != "" && !has:
		v.add(field.Invalid(path.Child("key"), key, "the "+kind+" has no such key"))
	}
}
