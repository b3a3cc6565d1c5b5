// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// follow returns the command that shows what is waited for while it changes.
func (e *explainer) follow() string {
	if e.following != "" {
		return e.following
	}
	command := e.seamark("get "+e.in.Name) + " --watch"
	if e.in.Marker != "" {
		command += " -m " + e.in.Marker
	}
	return command
}

// watching returns the command that shows the states of a marker while they change.
func (e *explainer) watching(marker string) string {
	return e.seamark("get") + " -m " + marker + " --watch"
}

// explaining returns the command that explains an object.
func (e *explainer) explaining(object string) string { return e.seamark("explain " + object) }

// seamark returns a command of this program in the namespace of the object, if it belongs to one.
func (e *explainer) seamark(command string) string {
	command = cmp.Or(e.in.Program, "seamark") + " " + command
	if e.in.Namespace != "" {
		command += " -n " + e.in.Namespace
	}
	return command
}

// inspect returns the command that shows why a pod of the namespace does not run as it should: the log of a container that
// has ended, or else the pod with its events.
func inspect(namespace string, pod *corev1.Pod) string {
	for _, status := range statusesOf(pod) {
		if status.State.Running == nil && !planning.Ready(pod) {
			if logs := logsOf(namespace, pod.Name, &status); logs != "" {
				return logs
			}
		}
	}
	return fmt.Sprintf("kubectl -n %s describe pod %s", namespace, pod.Name)
}

// logsOf returns the command that prints the log of a container that has ended with an error. It is empty if there is no log.
func logsOf(namespace, pod string, status *corev1.ContainerStatus) string {
	// The API server does not check the names in statuses.
	command := fmt.Sprintf("kubectl -n %s logs %s -c %s --tail=50", namespace, pod, text.Shell([]string{status.Name}))
	switch {
	case hasLog(status.State.Terminated):
		return command
	case status.State.Terminated == nil && hasLog(status.LastTerminationState.Terminated):
		return command + " --previous"
	}
	return ""
}

// hasLog reports whether a container failed after its program had started: the runtime has a log of it.
func hasLog(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && ended.ContainerID != "" && ended.ExitCode != 0 &&
		!slices.Contains([]string{"StartError", "ContainerCannotRun", "ContainerStatusUnknown"}, ended.Reason)
}

// statusesOf returns the statuses of the containers and the init containers of the pod.
func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}
