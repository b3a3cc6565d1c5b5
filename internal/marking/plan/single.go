// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Resolve resolves one probe of a container by the rules for markers: it sets the defaults,
// replaces port names by numbers, and drops the host. It is for probes in the pod's own spec. A
// reason in the problem means that the probe cannot run.
func Resolve(pod *corev1.Pod, containerName string, probe *corev1.Probe, defaults Defaults) (corev1.Probe, Problem) {
	resolved, problem := resolve(pod, &v1alpha1.PodContainerProbe{
		ContainerName: containerName,
		Probe:         v1alpha1.ContainerProbeSpec{Probe: *probe},
	}, defaults)
	if problem.Reason != "" {
		problem.Namespace, problem.Pod = pod.Namespace, pod.Name
	}
	return resolved.Probe, problem
}
