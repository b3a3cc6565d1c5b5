// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compiles the plan of a node: which probes its agent runs in which pods. It is
// pure: the plan depends only on the node's pods, the markers and the defaults.
//
// Invariants:
//   - The same pods and markers, in any order, give the same bytes.
//   - The plan has exactly the eligible pods that have at least one probe. A pod with a network
//     probe is missing until it has an address, with all of its probes, so that a pod joins the
//     plan once.
//   - Every probe is complete: it has all defaults, and port numbers instead of names.
//   - A marker that is being deleted contributes nothing.
//   - At most MaxMarkers markers contribute to the plan of a pod: the oldest of those that select it.
//   - The plan of a pod takes about MaxPodBytes at most, whatever other pods need.
package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// PlannedProbe is one probe in the plan of one pod.
type PlannedProbe struct {
	// ID identifies the probe.
	ID identity.ID
	// Plan is the probe as the agent gets it, with all defaults and port numbers.
	Plan v1alpha1.ContainerProbe
	// Source is the probe in the marker, with the marks that it declares. It belongs to the
	// marker and must not be modified.
	Source *v1alpha1.PodContainerProbe
}

// Problem describes why a probe cannot run in one pod.
type Problem struct {
	// ID identifies the probe.
	ID identity.ID
	// Namespace and Pod identify the pod.
	Namespace, Pod string
	// Container is the container name in the probe.
	Container string
	// Port is the port in the probe. It is empty unless Reason is PortNotFound.
	Port string
	// Counted lists the markers that count instead: see Excess. It is empty unless Reason is
	// TooManyMarkers.
	Counted string
	// Reason is why the probe cannot run.
	Reason Reason
}

// Reason is why a probe cannot run in a pod.
type Reason string

// The reasons why a probe cannot run.
const (
	// ContainerNotFound means that neither the containers nor the restartable init containers
	// of the pod include the probe's container.
	ContainerNotFound Reason = "ContainerNotFound"
	// PortNotFound means that the container has no port with the name, or that the number is
	// not a valid port.
	PortNotFound Reason = "PortNotFound"
	// TimeoutTooLong means that timeoutSeconds exceeds v1alpha1.MaxTimeoutSeconds. The CRD
	// rejects such probes, so this occurs only with a marker that was stored before.
	TimeoutTooLong Reason = "TimeoutTooLong"
	// HandlerInvalid means that the probe does not have exactly one handler. The CRD rejects
	// such probes, so this occurs only with another CRD.
	HandlerInvalid Reason = "HandlerInvalid"
	// StartupUnsupported means that the probe waits for a startup probe that an agent cannot run as
	// the kubelet does: it has a host, refers to environment variables in its command, is too large
	// for the cache, or has a port that the container does not have or a timeout above
	// v1alpha1.MaxTimeoutSeconds.
	StartupUnsupported Reason = "StartupUnsupported"
	// PodPlanFull means that the probes of the pod that come before, in the order of the plan, leave
	// no room for the probe: see MaxPodBytes.
	PodPlanFull Reason = "PodPlanFull"
	// TooManyMarkers means that more than MaxMarkers markers select the pod, and that the probe
	// belongs to one that does not count.
	TooManyMarkers Reason = "TooManyMarkers"
	// NamespaceExcluded means that the manager plans no pods of the namespace: see ExcludedError.
	NamespaceExcluded Reason = "NamespaceExcluded"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ContainerNotFound, PortNotFound, TimeoutTooLong, HandlerInvalid, StartupUnsupported, PodPlanFull,
		TooManyMarkers, NamespaceExcluded,
	}
}

// PodPlan is the plan of one pod, ordered by marker name and by probe order in the marker.
type PodPlan struct {
	// Probes are the probes to run.
	Probes []PlannedProbe
	// Problems are the probes that the markers that count require but that cannot run.
	Problems []Problem
	// Excess has the markers that do not count. Unplanned returns their probes.
	Excess Excess
}

// Node compiles the plan of a node from all pods that are bound to it. The plan orders the
// pods by namespace, name and UID. It has the address only of pods with network probes.
func Node(pods []*corev1.Pod, markers []*Marker, defaults Defaults) v1alpha1.NodePodProbeSpec {
	byNamespace := make(map[string][]*Marker)
	for _, m := range Sorted(markers) {
		byNamespace[m.Namespace] = append(byNamespace[m.Namespace], m)
	}
	var spec v1alpha1.NodePodProbeSpec
	for _, pod := range pods {
		probes := Pod(pod, byNamespace[pod.Namespace], defaults).Probes
		if address, found := address(pod, probes); found && len(probes) > 0 {
			spec.PodProbes = append(spec.PodProbes, wirePod(pod, address, probes))
		}
	}
	slices.SortFunc(spec.PodProbes, slicing.ByName)
	return spec
}

// Pod compiles the plan of one pod, as Node does for each of its pods, but does not require an
// address. The plan of a pod that is not eligible is empty.
func Pod(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	if !Eligible(pod) {
		return PodPlan{}
	}
	return Selected(pod, markers, defaults)
}

// Selected is like Pod, but does not require the pod to be eligible: it may be unbound or not
// initialized.
func Selected(pod *corev1.Pod, markers []*Marker, defaults Defaults) PodPlan {
	counted, excess := count(pod, markers)
	planned, room := PodPlan{Excess: excess}, MaxPodBytes
	for _, m := range counted {
		for _, src := range m.probes {
			spec, problem := resolve(pod, src.spec, defaults)
			if problem.Reason == "" && spec.TimeoutSeconds > v1alpha1.MaxTimeoutSeconds {
				problem = Problem{Container: src.spec.ContainerName, Reason: TimeoutTooLong}
			}
			startup, startupBytes := (*corev1.Probe)(nil), 0
			if problem.Reason == "" && src.spec.StartupPolicy == v1alpha1.StartupWait {
				startup, startupBytes, problem = startupOf(pod, src.spec.ContainerName)
			}
			if problem.Reason == "" && src.bytes+startupBytes > room {
				problem = Problem{Container: src.spec.ContainerName, Reason: PodPlanFull}
			}
			if problem.Reason != "" {
				problem.ID, problem.Namespace, problem.Pod = src.id, pod.Namespace, pod.Name
				planned.Problems = append(planned.Problems, problem)
				continue
			}
			room -= src.bytes + startupBytes
			planned.Probes = append(planned.Probes, PlannedProbe{
				ID:     src.id,
				Source: src.spec,
				Plan: v1alpha1.ContainerProbe{
					Name:          src.wire,
					Plan:          m.plan,
					ContainerName: src.spec.ContainerName,
					Probe:         spec,
					PublishBody:   m.publishBody && spec.HTTPGet != nil,
					Values:        src.values,
					Startup:       startup,

					MessageUpdates: m.updatesWith(defaults),
				},
			})
		}
	}
	return planned
}

// Sorted returns the markers, ordered by namespace and name. It copies them only if they are not in
// this order.
func Sorted(markers []*Marker) []*Marker {
	byName := func(a, b *Marker) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}
	if slices.IsSortedFunc(markers, byName) {
		return markers
	}
	return slices.SortedFunc(slices.Values(markers), byName)
}

// AwaitsAddress reports whether the pod is not in the plan of its node yet, with any of the planned
// probes, because one of them is a network probe and the pod has no address.
func AwaitsAddress(pod *corev1.Pod, probes []PlannedProbe) bool {
	_, found := address(pod, probes)
	return !found
}

// address returns the address that the probes need, which is empty if they need none. It returns
// false if the pod must not be planned until it has one.
func address(pod *corev1.Pod, probes []PlannedProbe) (string, bool) {
	network := slices.ContainsFunc(probes, func(p PlannedProbe) bool {
		return p.Plan.Probe.Exec == nil || p.Plan.Startup != nil && p.Plan.Startup.Exec == nil
	})
	if !network {
		return "", true
	}
	return pod.Status.PodIP, addressable(pod)
}

func wirePod(pod *corev1.Pod, address string, probes []PlannedProbe) v1alpha1.PodProbe {
	wire := v1alpha1.PodProbe{
		Name:       pod.Name,
		Namespace:  pod.Namespace,
		UID:        string(pod.UID),
		RuntimeUID: RuntimeUID(pod),
		IP:         address,
		Probes:     make([]v1alpha1.ContainerProbe, 0, len(probes)),
	}
	for _, probe := range probes {
		wire.Probes = append(wire.Probes, probe.Plan)
	}
	return wire
}

// Markers returns the names of the markers of the namespace that have probes in the plan of the pods,
// or nil if there are none.
func Markers(pods []v1alpha1.PodProbe, namespace string) sets.Set[string] {
	var markers sets.Set[string]
	last := ""
	for i := range pods {
		pod := &pods[i]
		if pod.Namespace != namespace {
			continue
		}
		for j := range pod.Probes {
			id, err := identity.Parse(pod.Probes[j].Name)
			if err != nil || id.Marker == last {
				continue
			}
			if markers == nil {
				markers = sets.New[string]()
			}
			markers.Insert(id.Marker)
			last = id.Marker
		}
	}
	return markers
}
