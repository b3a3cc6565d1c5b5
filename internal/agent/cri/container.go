// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Labels that the kubelet sets on its containers.
const (
	labelPodUID       = "io.kubernetes.pod.uid"
	labelPodNamespace = "io.kubernetes.pod.namespace"
	labelPodName      = "io.kubernetes.pod.name"
	labelContainer    = "io.kubernetes.container.name"
)

// maxReasonBytes is the maximum length of Instance.Reason.
const maxReasonBytes = 512

// Instance is the most recent instance of one container of a pod. Each restart of the
// container is a new instance. An instance that is created but not started does not count.
type Instance struct {
	identity.ContainerKey
	// Pod is the name of the pod in the runtime.
	Pod types.NamespacedName
	// ID is the container ID in the runtime.
	ID string
	// Running is whether the instance runs.
	Running bool
	// StartedAt is when the instance started.
	StartedAt time.Time
	// Reason is why the instance does not run, such as "exited with code 1". It is empty while
	// the instance runs and has at most 512 bytes.
	Reason string
}

// orderedInstance is an instance with its order among the instances of its container.
type orderedInstance struct {
	Instance
	createdAt int64
	attempt   uint32
}

// olderThan orders the instances of one container. The creation time and the attempt can
// contradict each other: the time if the wall clock was set back in between, the attempt
// because the kubelet derives it from the instances that still exist. In that case, the
// instance that runs is the newer one, because the kubelet runs one at a time.
func (i orderedInstance) olderThan(other orderedInstance) bool {
	byTime, byAttempt := cmp.Compare(i.createdAt, other.createdAt), cmp.Compare(i.attempt, other.attempt)
	switch {
	case byTime == 0:
		return byAttempt < 0
	case byAttempt == 0, byTime == byAttempt:
		return byTime < 0
	case i.Running, other.Running:
		return !i.Running
	default:
		return byAttempt < 0
	}
}

// description is what list entries and statuses of containers have in common.
type description interface {
	GetId() string
	GetState() runtimeapi.ContainerState
	GetCreatedAt() int64
	GetMetadata() *runtimeapi.ContainerMetadata
	GetLabels() map[string]string
}

// keyOf returns the container of an instance. It returns false if the kubelet did not create it.
func keyOf(d description) (identity.ContainerKey, bool) {
	labels := d.GetLabels()
	key := identity.ContainerKey{PodUID: types.UID(labels[labelPodUID]), Name: labels[labelContainer]}
	return key, key.PodUID != "" && key.Name != ""
}

// instanceOf returns an instance. It returns false if the kubelet did not create it, if it has
// not started, or if its state is unknown to the runtime.
func instanceOf(d description) (orderedInstance, bool) {
	key, ok := keyOf(d)
	if !ok {
		return orderedInstance{}, false
	}
	state := d.GetState()
	if state != runtimeapi.ContainerState_CONTAINER_RUNNING && state != runtimeapi.ContainerState_CONTAINER_EXITED {
		return orderedInstance{}, false
	}
	return orderedInstance{
		Instance: Instance{
			ContainerKey: key,
			Pod:          types.NamespacedName{Namespace: d.GetLabels()[labelPodNamespace], Name: d.GetLabels()[labelPodName]},
			ID:           d.GetId(),
			Running:      state == runtimeapi.ContainerState_CONTAINER_RUNNING,
		},
		createdAt: d.GetCreatedAt(),
		attempt:   d.GetMetadata().GetAttempt(),
	}, true
}

// detailedInstanceOf returns an instance with its start time and reason, which only a status
// contains.
func detailedInstanceOf(status *runtimeapi.ContainerStatus) (orderedInstance, bool) {
	instance, ok := instanceOf(status)
	if !ok {
		return orderedInstance{}, false
	}
	if status.GetStartedAt() > 0 {
		instance.StartedAt = time.Unix(0, status.GetStartedAt())
	}
	if !instance.Running {
		instance.Reason = reasonOf(status)
	}
	return instance, true
}

// reasonOf returns why a container has ended. It omits the reasons Completed and Error, which
// repeat the exit code.
func reasonOf(status *runtimeapi.ContainerStatus) string {
	reason := fmt.Sprintf("exited with code %d", status.GetExitCode())
	var more []string
	if r := status.GetReason(); r != "" && r != "Completed" && r != "Error" {
		more = append(more, r)
	}
	if m := strings.TrimSpace(status.GetMessage()); m != "" {
		more = append(more, m)
	}
	if len(more) > 0 {
		reason += " (" + strings.Join(more, ": ") + ")"
	}
	return text.Truncate(reason, maxReasonBytes)
}

// instances contains the most recent instance of each container on the node.
type instances map[identity.ContainerKey]orderedInstance

// put records an instance and reports whether it is new or has changed. It ignores instances
// older than the known one, and the running state of an instance that is known to have ended,
// because statuses may arrive out of order.
func (m instances) put(instance orderedInstance) bool {
	known, ok := m[instance.ContainerKey]
	switch {
	case ok && known.ID == instance.ID && !known.Running && instance.Running,
		ok && known.ID != instance.ID && instance.olderThan(known),
		ok && known.Instance == instance.Instance:
		return false
	}
	m[instance.ContainerKey] = instance
	return true
}

func (m instances) remove(id string) (identity.ContainerKey, bool) {
	for key, known := range m {
		if known.ID == id {
			delete(m, key)
			return key, true
		}
	}
	return identity.ContainerKey{}, false
}

// knows reports whether a list entry adds nothing to the known instance.
func (m instances) knows(listed orderedInstance) bool {
	known, ok := m[listed.ContainerKey]
	return ok && known.ID == listed.ID && (known.Running == listed.Running || !known.Running)
}

// newestInstances returns the most recent instance of each container in a list, without the
// details that only a status contains. It also returns the containers with an instance whose
// state is unknown to the runtime.
func newestInstances(list []*runtimeapi.Container) (newest instances, unknown map[identity.ContainerKey]bool) {
	newest, unknown = instances{}, map[identity.ContainerKey]bool{}
	for _, listed := range list {
		if instance, ok := instanceOf(listed); ok {
			newest.put(instance)
		} else if key, ok := keyOf(listed); ok && listed.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
			unknown[key] = true
		}
	}
	return newest, unknown
}
