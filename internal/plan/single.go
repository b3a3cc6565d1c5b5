// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Resolve makes one probe of a container independent of the pod's spec, by the rules for
// the probes of markers: unset fields take the defaults, named ports become numbers, and
// the host is left out. It serves probes that the pod itself declares. A reason in the
// problem says that the probe can't be run.
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
