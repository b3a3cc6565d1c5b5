// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// The API server has not validated the pod yet: a request has up to 3 MiB, and the time of an injection grows
// with products of these numbers, so that one tenant could occupy the injectors of all. No pod of a cluster
// has as many.
const (
	maxContainers = 256
	maxVolumes    = 1024
	maxSecrets    = 256
	// maxFields is the maximum number of variables, mounts and devices of all containers.
	maxFields = 2048
	// maxListBytes is the maximum size of the list of injected sets. The sets of Seamark never write more.
	maxListBytes = 32 << 10
)

// tooLarge returns why the pod is too large, or nothing.
func tooLarge(pod *corev1.Pod) string {
	fields := 0
	for _, c := range containersOf(pod) {
		fields += len(c.Env) + len(c.VolumeMounts) + len(c.VolumeDevices)
	}
	for _, part := range []struct {
		name       string
		got, limit int
	}{
		{"containers", len(pod.Spec.InitContainers) + len(pod.Spec.Containers), maxContainers},
		{"volumes", len(pod.Spec.Volumes), maxVolumes},
		{"imagePullSecrets", len(pod.Spec.ImagePullSecrets), maxSecrets},
		{"variables, mounts and devices", fields, maxFields},
	} {
		if part.got > part.limit {
			return fmt.Sprintf("the pod has %d %s, and at most %d are possible for a pod with sidecars", part.got, part.name, part.limit)
		}
	}
	return ""
}
