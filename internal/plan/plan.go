// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compiles the plan of one node: which probes its agent runs in which
// pods. It is a pure function of the node's pods and of the markers.
//
// What holds for every plan:
//   - the same pods and markers, in any order, give the same bytes;
//   - it has exactly the pods that are eligible and that at least one probe reaches;
//   - every probe in it has all its fields: defaults are set and named ports resolved;
//   - a marker that is being deleted contributes nothing.
package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// PlannedProbe is one probe in the plan of one pod.
type PlannedProbe struct {
	// ID names the probe.
	ID probeid.ID
	// Plan is what the agent is told, with every default and named port resolved.
	Plan v1alpha1.ContainerProbe
	// Source is the marker's own words, with the marks that it declares. It belongs to
	// the marker and must not be changed.
	Source *v1alpha1.PodContainerProbe
}

// Problem is a probe that is left out for one pod.
type Problem struct {
	// ID names the probe.
	ID probeid.ID
	// Namespace and Pod name the pod.
	Namespace, Pod string
	// Container is the container that the probe names.
	Container string
	// Port is the port that the probe names; empty unless Reason is PortNotFound.
	Port string
	// Reason says why the probe is left out.
	Reason Reason
}

// Reason says why a probe is left out for a pod.
type Reason string

// The reasons for which a probe is left out.
const (
	// ContainerNotFound means that the pod has no container of the name, among its
	// containers and its restartable init containers.
	ContainerNotFound Reason = "ContainerNotFound"
	// PortNotFound means that the container has no port of the name, or that the
	// number is not a port.
	PortNotFound Reason = "PortNotFound"
	// HandlerInvalid means that the probe has not exactly one handler. The CRD refuses
	// that, so it comes only from an API server with other rules.
	HandlerInvalid Reason = "HandlerInvalid"
)

// PodPlan is the plan of one pod, in the order of the markers' names and of the probes
// in a marker.
type PodPlan struct {
	// Probes are the probes to run.
	Probes []PlannedProbe
	// Problems are the probes that the markers ask for and that can't be run.
	Problems []Problem
}

// Node compiles the plan of a node from all pods bound to it. The pods are ordered by
// namespace, name and UID. Pods that are not eligible and pods without any probe are
// not in it.
func Node(pods []*corev1.Pod, markers []*Marker, defaults Defaults) v1alpha1.NodePodProbeSpec {
	byNamespace := make(map[string][]*Marker)
	for _, m := range Sorted(markers) {
		byNamespace[m.Namespace] = append(byNamespace[m.Namespace], m)
	}
	var spec v1alpha1.NodePodProbeSpec
	for _, pod := range pods {
		planned := forPod(pod, byNamespace[pod.Namespace], defaults)
		if len(planned.Probes) > 0 {
			spec.PodProbes = append(spec.PodProbes, wirePod(pod, planned.Probes))
		}
	}
	slices.SortFunc(spec.PodProbes, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.UID, b.UID),
		)
	})
	return spec
}

// Pod compiles the plan of one pod, as Node does for each of its pods. It is empty for
// a pod that is not eligible.
func Pod(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	return forPod(pod, Sorted(markers), defaults)
}

// Selected compiles the plan of one pod as Pod does, but for a pod in any state: bound to
// a node or not yet, initialized or not.
func Selected(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	return probesOf(pod, Sorted(markers), defaults)
}

// Sorted returns the markers ordered by namespace and name, without changing the
// slice given.
func Sorted(markers []*Marker) []*Marker {
	sorted := slices.Clone(markers)
	slices.SortFunc(sorted, func(a, b *Marker) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return sorted
}

// forPod expects the markers in order.
func forPod(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	if !Eligible(pod) {
		return PodPlan{}
	}
	return probesOf(pod, markers, defaults)
}

// probesOf expects the markers in order.
func probesOf(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	var planned PodPlan
	for _, m := range markers {
		if !m.Selects(pod) {
			continue
		}
		for _, src := range m.probes {
			spec, problem := resolve(pod, src.spec, defaults)
			if problem.Reason != "" {
				problem.ID, problem.Namespace, problem.Pod = src.id, pod.Namespace, pod.Name
				planned.Problems = append(planned.Problems, problem)
				continue
			}
			planned.Probes = append(planned.Probes, PlannedProbe{
				ID:     src.id,
				Source: src.spec,
				Plan: v1alpha1.ContainerProbe{
					Name:          src.wire,
					ContainerName: src.spec.ContainerName,
					Probe:         spec,
				},
			})
		}
	}
	return planned
}

func wirePod(pod *corev1.Pod, probes []PlannedProbe) v1alpha1.PodProbe {
	wire := v1alpha1.PodProbe{
		Name:      pod.Name,
		Namespace: pod.Namespace,
		UID:       string(pod.UID),
		IP:        pod.Status.PodIP,
		Probes:    make([]v1alpha1.ContainerProbe, 0, len(probes)),
	}
	for _, probe := range probes {
		wire.Probes = append(wire.Probes, probe.Plan)
	}
	return wire
}
