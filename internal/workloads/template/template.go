// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template compares pod templates by the pods that Kubernetes makes of them. Clients send
// templates without the values that Kubernetes sets by default, OpenKruise's webhook stores them
// with these values, and a client that writes its whole template removes them again. None of this
// changes a pod, so it must not look like a new revision.
//
// The defaults are those of Kubernetes' API server. Test module parity compares them with its code,
// field by field.
package template

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Records reports whether the recorded template is the wanted one, written with other defaults: pods of
// the recorded template are up to date.
func Records(recorded, wanted *corev1.PodTemplateSpec) bool {
	if equality.Semantic.DeepEqual(recorded, wanted) {
		return true
	}
	before, after := WithDefaults(recorded), WithDefaults(wanted)
	for i := range min(len(recorded.Spec.Containers), len(wanted.Spec.Containers)) {
		if KeepsPullPolicy(&recorded.Spec.Containers[i], &wanted.Spec.Containers[i]) {
			after.Spec.Containers[i].ImagePullPolicy = before.Spec.Containers[i].ImagePullPolicy
		}
	}
	return equality.Semantic.DeepEqual(before, after)
}

// KeepsPullPolicy reports whether a pod of the old container keeps its pull policy when it becomes one
// of the wanted container: this sets none, and the policy of the old one is a default, either that of
// Kubernetes for its image, or Always, which OpenKruise's webhook sets for every image.
func KeepsPullPolicy(old, wanted *corev1.Container) bool {
	return wanted.ImagePullPolicy == "" &&
		(old.ImagePullPolicy == "" || old.ImagePullPolicy == corev1.PullAlways || old.ImagePullPolicy == pullPolicy(old.Image))
}

// WithDefaults returns a copy of the template with the values that the API server sets in a pod that
// is created from it. It does not derive the resources of the pod from those of its containers, if
// the template sets resources of the pod.
func WithDefaults(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	whole := template.DeepCopy()
	spec := &whole.Spec
	fill(&spec.DNSPolicy, corev1.DNSClusterFirst)
	fill(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	fill(&spec.SchedulerName, corev1.DefaultSchedulerName)
	point(&spec.SecurityContext, corev1.PodSecurityContext{})
	point(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	point(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	// The API server keeps the two names of this field equal.
	fill(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	round(spec.Overhead)
	if spec.Resources != nil {
		round(spec.Resources.Limits, spec.Resources.Requests)
	}
	for i := range spec.Volumes {
		volume(&spec.Volumes[i].VolumeSource)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			container(&containers[i], spec.HostNetwork)
		}
	}
	return whole
}

// container sets the defaults of a container.
func container(c *corev1.Container, hostNetwork bool) {
	fill(&c.ImagePullPolicy, pullPolicy(c.Image))
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		fill(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			fill(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if source := c.Env[i].ValueFrom; source != nil {
			fieldRef(source.FieldRef)
			if source.FileKeyRef != nil {
				point(&source.FileKeyRef.Optional, false)
			}
		}
	}
	round(c.Resources.Limits, c.Resources.Requests)
	requestLimits(&c.Resources)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			defaultProbe(probe)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil {
			httpGet(hook.HTTPGet)
		}
	}
}

// pullPolicy returns the policy of a container with the image that sets none: Always for the tag
// latest, also if the image names neither a tag nor a digest.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digested := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	if tag == "latest" || !tagged && !digested && name != "" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// requestLimits sets the limits as requests where there are none.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; requested {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}

func defaultProbe(probe *corev1.Probe) {
	fill(&probe.TimeoutSeconds, 1)
	fill(&probe.PeriodSeconds, 10)
	fill(&probe.SuccessThreshold, 1)
	fill(&probe.FailureThreshold, 3)
	httpGet(probe.HTTPGet)
	if probe.GRPC != nil {
		point(&probe.GRPC.Service, "")
	}
}

func httpGet(action *corev1.HTTPGetAction) {
	if action != nil {
		fill(&action.Path, "/")
		fill(&action.Scheme, corev1.URISchemeHTTP)
	}
}

func fieldRef(selector *corev1.ObjectFieldSelector) {
	if selector != nil {
		fill(&selector.APIVersion, "v1")
	}
}

// round rounds quantities up to a thousandth.
func round(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			quantity.RoundUp(resource.Milli)
			list[name] = quantity
		}
	}
}

// fill sets a field that has its zero value.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// point sets a pointer that is nil.
func point[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
