// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/text"
)

// The labels by which the kubelet tells its containers.
const (
	labelPodUID    = "io.kubernetes.pod.uid"
	labelContainer = "io.kubernetes.container.name"
)

// maxReasonBytes bounds Container.Reason.
const maxReasonBytes = 512

// Container is the newest start of one container of a pod. A container that the runtime
// has made and not started yet does not count: until it has, the start before it does.
type Container struct {
	probeid.Container
	// ID is the runtime's name of this start. Every restart has its own.
	ID string
	// Running is whether it runs.
	Running bool
	// StartedAt is when it started.
	StartedAt time.Time
	// Reason says why it does not run, such as "exited with code 1"; empty while it does.
	// It has at most 512 bytes.
	Reason string
}

// start is a container with its place among the starts of the same one.
type start struct {
	Container
	createdAt int64
	attempt   uint32
}

// olderThan orders the starts of one container. The kubelet counts attempts from what is
// left of earlier ones, so the time decides first.
func (s start) olderThan(other start) bool {
	if s.createdAt != other.createdAt {
		return s.createdAt < other.createdAt
	}
	return s.attempt < other.attempt
}

// described is what lists and statuses of containers have in common.
type described interface {
	GetId() string
	GetState() runtimeapi.ContainerState
	GetCreatedAt() int64
	GetMetadata() *runtimeapi.ContainerMetadata
	GetLabels() map[string]string
}

// keyOf tells whose start it is. It reports false for what is no container of the kubelet.
func keyOf(d described) (probeid.Container, bool) {
	labels := d.GetLabels()
	key := probeid.Container{PodUID: types.UID(labels[labelPodUID]), Name: labels[labelContainer]}
	return key, key.PodUID != "" && key.Name != ""
}

// startOf reads a start. It reports false for what is no container of the kubelet, has
// not started, or is in a state that the runtime itself does not know.
func startOf(d described) (start, bool) {
	key, ok := keyOf(d)
	if !ok {
		return start{}, false
	}
	state := d.GetState()
	if state != runtimeapi.ContainerState_CONTAINER_RUNNING && state != runtimeapi.ContainerState_CONTAINER_EXITED {
		return start{}, false
	}
	return start{
		Container: Container{Container: key, ID: d.GetId(), Running: state == runtimeapi.ContainerState_CONTAINER_RUNNING},
		createdAt: d.GetCreatedAt(),
		attempt:   d.GetMetadata().GetAttempt(),
	}, true
}

// detailedOf reads a start from its status, with all that is known of it.
func detailedOf(status *runtimeapi.ContainerStatus) (start, bool) {
	s, ok := startOf(status)
	if !ok {
		return start{}, false
	}
	if status.GetStartedAt() > 0 {
		s.StartedAt = time.Unix(0, status.GetStartedAt())
	}
	if !s.Running {
		s.Reason = reasonOf(status)
	}
	return s, true
}

// reasonOf says why a container has ended. Completed and Error are left out: they repeat
// the exit code.
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

// table is the newest start of each container on the node.
type table map[probeid.Container]start

// put takes note of a start and reports whether that changes what is known. A start
// older than the known one changes nothing, nor does one that ran before it ended:
// statuses may arrive out of order.
func (t table) put(s start) bool {
	known, ok := t[s.Container.Container]
	switch {
	case ok && known.ID == s.ID && !known.Running && s.Running,
		ok && known.ID != s.ID && s.olderThan(known),
		ok && known.Container == s.Container:
		return false
	}
	t[s.Container.Container] = s
	return true
}

// remove forgets the start of that ID and tells whose it was.
func (t table) remove(id string) (probeid.Container, bool) {
	for key, known := range t {
		if known.ID == id {
			delete(t, key)
			return key, true
		}
	}
	return probeid.Container{}, false
}

// knows reports whether all that a list says of a start is known.
func (t table) knows(listed start) bool {
	known, ok := t[listed.Container.Container]
	return ok && known.ID == listed.ID && (known.Running == listed.Running || !known.Running)
}

// newest returns the newest start of each container in a list, and whose starts are in a
// state that the runtime itself does not know. The starts lack what only a status tells.
func newest(list []*runtimeapi.Container) (starts table, unclear map[probeid.Container]bool) {
	starts, unclear = table{}, map[probeid.Container]bool{}
	for _, listed := range list {
		if s, ok := startOf(listed); ok {
			starts.put(s)
		} else if key, ok := keyOf(listed); ok && listed.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
			unclear[key] = true
		}
	}
	return starts, unclear
}
