// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// maxCompared is with how many others each probe that sets a key is compared.
const maxCompared = 200

// claimant is a probe that sets a mark.
type claimant struct {
	marker *marker
	probe  int
}

func (a claimant) spec() *v1alpha1.PodContainerProbe { return &a.marker.spec.Spec.Probes[a.probe] }

func (a claimant) id() identity.ID {
	return identity.ID{Marker: a.marker.raw.GetName(), Probe: a.spec().Name}
}

// checkSharedMarks finds marks that two probes set on the same pod.
func (c *checker) checkSharedMarks(s *scope) {
	claimants := map[mark.Key][]claimant{}
	for _, m := range s.markers {
		for i := range m.spec.Spec.Probes {
			loser := claimant{m, i}
			for _, key := range mark.Declared(loser.spec()) {
				earlier := claimants[key]
				if n := slices.IndexFunc(earlier, func(winner claimant) bool { return s.conflict(winner, loser) }); n >= 0 {
					winner := earlier[n]
					c.add(ruleSharedMark, m.object, fieldOf(m, i, key),
						fmt.Sprintf("the probe %s of %s sets the %s too, and comes first", winner.id(), winner.marker.place(), key),
						"set it in one of the probes only")
				}
				if len(earlier) < maxCompared {
					claimants[key] = append(earlier, loser)
				}
			}
		}
	}
}

// conflict reports whether both probes can run in one pod. If the manifests have the pods of both
// markers, these decide, otherwise the selectors.
func (s *scope) conflict(a, b claimant) bool {
	if a.marker != b.marker && a.marker.raw.GetName() == b.marker.raw.GetName() {
		// One replaces the other.
		return false
	}
	pods, others := s.matched[a.marker], s.matched[b.marker]
	if len(pods) == 0 || len(others) == 0 {
		return overlap(a.marker.requirements, b.marker.requirements)
	}
	return slices.ContainsFunc(pods, func(w *workload) bool {
		return slices.Contains(others, w) && a.runsIn(w) && b.runsIn(w)
	})
}

func (a claimant) runsIn(w *workload) bool { return a.problemIn(w).Reason != plan.ContainerNotFound }

// problemIn returns why the probe cannot run in the pods of the workload.
func (a claimant) problemIn(w *workload) plan.Problem {
	spec := a.spec()
	_, problem := plan.Resolve(&w.pod, spec.ContainerName, &spec.Probe.Probe, plan.KubernetesDefaults())
	return problem
}

// checkContainer checks that one of the workloads has the container and the named port of the probe.
func (c *checker) checkContainer(m *marker, i int, matched []*workload) {
	probe := claimant{m, i}
	c.checkStartup(probe, matched)
	var port *workload
	for _, w := range matched {
		switch probe.problemIn(w).Reason {
		case plan.ContainerNotFound:
		case plan.PortNotFound:
			port = w
		default:
			return
		}
	}
	if port != nil {
		c.addPort(probe, port)
		return
	}
	c.add(ruleNoContainer, m.object, probePath(i)+".containerName",
		fmt.Sprintf("%s has no container %q that probes can run in", matched[0].place(), probe.spec().ContainerName),
		"use the name of one of its containers, or of an init container with restartPolicy Always")
}

// checkStartup checks that the container of a probe that waits for the startup probe has one in all
// workloads.
func (c *checker) checkStartup(probe claimant, matched []*workload) {
	spec := probe.spec()
	if spec.StartupPolicy != v1alpha1.StartupWait {
		return
	}
	for _, w := range matched {
		of := func(c corev1.Container) bool { return c.Name == spec.ContainerName && c.StartupProbe == nil }
		if probe.runsIn(w) && (slices.ContainsFunc(w.pod.Spec.Containers, of) || slices.ContainsFunc(w.pod.Spec.InitContainers, of)) {
			c.add(ruleNoStartup, probe.marker.object, probePath(probe.probe)+".startupPolicy",
				fmt.Sprintf("container %s of %s has no startup probe: it counts as started when it runs", spec.ContainerName, w.place()),
				"add a startupProbe to the container, or remove the field")
			return
		}
	}
}

// addPort adds the finding for the name of a port that the container in the workload does not have.
// The schema has found invalid numbers.
func (c *checker) addPort(probe claimant, w *workload) {
	handler := probe.spec().Probe
	field, port := probePath(probe.probe)+".probe.tcpSocket.port", intstr.IntOrString{}
	switch {
	case handler.HTTPGet != nil:
		field, port = probePath(probe.probe)+".probe.httpGet.port", handler.HTTPGet.Port
	case handler.TCPSocket != nil:
		port = handler.TCPSocket.Port
	}
	if port.Type == intstr.String {
		c.add(ruleNoPort, probe.marker.object, field,
			fmt.Sprintf("container %s of %s has no port %q", probe.spec().ContainerName, w.place(), port.StrVal),
			"use the name of one of its ports, or a number")
	}
}

// fieldOf returns the path of the first field of a probe that sets the mark.
func fieldOf(m *marker, i int, key mark.Key) string {
	for j, policy := range m.spec.Spec.Probes[i].MarkerPolicy {
		hasKey := func(from v1alpha1.ValueSource) bool { return from.Key == key.Name }
		if k := slices.IndexFunc(policy.LabelsFrom, hasKey); k >= 0 && key.Kind == mark.KindLabel {
			return fmt.Sprintf("%s.markerPolicy[%d].labelsFrom[%d].key", probePath(i), j, k)
		}
		if k := slices.IndexFunc(policy.AnnotationsFrom, hasKey); k >= 0 && key.Kind == mark.KindAnnotation {
			return fmt.Sprintf("%s.markerPolicy[%d].annotationsFrom[%d].key", probePath(i), j, k)
		}
		if _, found := policy.Labels[key.Name]; found && key.Kind == mark.KindLabel {
			return policyPath(i, j, "labels", key.Name)
		}
		if _, found := policy.Annotations[key.Name]; found && key.Kind == mark.KindAnnotation {
			return policyPath(i, j, "annotations", key.Name)
		}
	}
	return probePath(i) + ".podConditionType"
}

func hasKey(key string) func(labels.Requirement) bool {
	return func(r labels.Requirement) bool { return r.Key() == key }
}

func equals(selector map[string]string) requirements {
	all, _ := labels.Set(selector).AsSelectorPreValidated().Requirements()
	return requirements(all)
}
