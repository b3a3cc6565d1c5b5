// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// startupOf returns the startup probe of a container as an agent runs it, and its size. It is nil if
// the container, which must exist, has none. The kubelet always uses the defaults of Kubernetes.
func startupOf(pod *corev1.Pod, name string) (*corev1.Probe, int, Problem) {
	declared := container(pod, name).StartupProbe
	if declared == nil {
		return nil, 0, Problem{}
	}
	startup, problem := Resolve(pod, name, declared, KubernetesDefaults())
	if problem.Reason != "" || !runnable(declared) || startup.TimeoutSeconds > v1alpha1.MaxTimeoutSeconds {
		return nil, 0, Problem{Container: name, Reason: StartupUnsupported}
	}
	grace := cmp.Or(declared.TerminationGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds)
	startup.TerminationGracePeriodSeconds = ptr.To(ptr.Deref(grace, corev1.DefaultTerminationGracePeriodSeconds))
	// The types of a plan always encode.
	encoded, _ := json.Marshal(&startup)
	return &startup, len(encoded), Problem{}
}

// runnable reports whether an agent runs the probe as the kubelet does. The kubelet replaces
// variables in commands, and connects to other hosts.
func runnable(probe *corev1.Probe) bool {
	switch {
	case probe.Exec != nil:
		return !slices.ContainsFunc(probe.Exec.Command, func(arg string) bool { return strings.Contains(arg, "$(") })
	case probe.HTTPGet != nil:
		return probe.HTTPGet.Host == ""
	case probe.TCPSocket != nil:
		return probe.TCPSocket.Host == ""
	default:
		return true
	}
}
