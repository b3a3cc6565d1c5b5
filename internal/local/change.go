// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// ChangeKind is the subject of a Change. It determines which fields of the Change are set.
type ChangeKind string

// The kinds of changes.
const (
	// KindPod is a new pod or a new phase. Phase is set.
	KindPod ChangeKind = "Pod"
	// KindContainer is a new state, readiness or restart count of a container. Container
	// and Status are set.
	KindContainer ChangeKind = "Container"
	// KindProbe is a run of a probe, or a change of its state without a run. Container and
	// Probe are set.
	KindProbe ChangeKind = "Probe"
	// KindCondition is a pod condition that was added or removed, or whose status, reason
	// or message changed. Condition is set.
	KindCondition ChangeKind = "Condition"
	// KindLabel and KindAnnotation are a key that was added, changed or removed. Key and
	// Value are set.
	KindLabel      ChangeKind = "Label"
	KindAnnotation ChangeKind = "Annotation"
	// KindEvent is an event that a cluster would store. Event is set, and Container if the
	// event is about one.
	KindEvent ChangeKind = "Event"
	// KindLog is one line of a container's output. Container and Log are set.
	KindLog ChangeKind = "Log"
)

// Change is one change of a pod. It is never modified after it was passed to Observe.
type Change struct {
	// Kind determines which of the fields below are set.
	Kind ChangeKind
	// Time is when the change occurred.
	Time time.Time
	// Namespace and Pod identify the pod.
	Namespace, Pod string
	// Container is the name of the container. It is empty if the change is about the pod.
	Container string

	// Phase is the pod's phase.
	Phase corev1.PodPhase
	// Status is the container's complete status.
	Status *corev1.ContainerStatus
	// Probe is the probe after the change.
	Probe *ProbeChange
	// Condition is the pod's condition. If Removed is true, it is the removed one.
	Condition *corev1.PodCondition
	// Key and Value are those of a label or annotation. If Removed is true, Value is the
	// removed one.
	Key, Value string
	// Removed reports whether the condition, label or annotation was removed.
	Removed bool
	// Event is the event that the kubelet or the agent would write.
	Event *PodEvent
	// Log is a line of output.
	Log *LogLine
}

// PodEvent is an event about a pod.
type PodEvent struct {
	// Type is Normal or Warning.
	Type string `json:"type"`
	// Reason is a word in CamelCase, such as Unhealthy.
	Reason string `json:"reason"`
	// Message is the text of the event.
	Message string `json:"message"`
}

// LogLine is one line of a container's output.
type LogLine struct {
	// Stream is stdout or stderr.
	Stream string `json:"stream"`
	// Text is the line without its newline, cut to 16 KiB.
	Text string `json:"text"`
}

// ProbeType distinguishes the kubelet's probes and the probes of markers.
type ProbeType string

// The types of probes. The kubelet's events begin with the names of its three types.
const (
	ProbeStartup   ProbeType = "Startup"
	ProbeLiveness  ProbeType = "Liveness"
	ProbeReadiness ProbeType = "Readiness"
	ProbeMarker    ProbeType = "Marker"
)

// ProbeChange is the current state of one probe of one container, and what changed it. Its JSON is
// part of the stable format of `seamark local -o json`.
type ProbeChange struct {
	// Type is the type of the probe.
	Type ProbeType `json:"type"`
	// Marker and Name identify the probe of a marker. They are empty for the kubelet's
	// probes.
	Marker string `json:"marker,omitempty"`
	Name   string `json:"name,omitempty"`
	// Container is the container that is probed.
	Container string `json:"-"`
	// Handler is exec, httpGet, tcpSocket or grpc.
	Handler string `json:"handler"`

	// Active reports whether the probe runs. The kubelet's probes wait for the container
	// and its startup probe, and stop when the container is killed.
	Active bool `json:"active"`
	// State is the state of the probe. It is empty before the first result.
	State v1alpha1.ProbeState `json:"state,omitempty"`
	// Message is the message of the state.
	Message string `json:"message"`
	// LastTransition is when State last changed. It is zero before the first result.
	LastTransition time.Time `json:"-"`

	// Transition reports whether this change changed State. It is false in a snapshot.
	Transition bool `json:"transition"`
	// Ran reports whether a run caused this change. It is false in a snapshot.
	Ran bool `json:"ran"`

	// Success and Output are the result of the newest run. LastProbe is when it ended. It
	// is zero before the first run.
	Success   bool      `json:"-"`
	Output    string    `json:"output,omitempty"`
	LastProbe time.Time `json:"-"`
	// Error says why the newest run had no result. Success and Output are then those of
	// the run before. It is empty otherwise.
	Error string `json:"error,omitempty"`
	// Streak is the number of equal results in a row, Threshold the number that changes
	// the state to them. Both are zero before the first run.
	Streak    int `json:"streak"`
	Threshold int `json:"threshold"`
	// Runs is the number of runs since the container started.
	Runs int `json:"runs"`
}

// PodView is the current state of a pod.
type PodView struct {
	// Pod is a copy of the pod with its status, as the API of a cluster would return it.
	Pod *corev1.Pod
	// Probes are the pod's probes: the kubelet's by container, then those of the markers
	// by marker, in the marker's order.
	Probes []ProbeChange
	// MarkedLabels and MarkedAnnotations are the keys that the markers have set.
	MarkedLabels, MarkedAnnotations []string
	// MarkedConditions are the condition types that the markers have set.
	MarkedConditions []string
	// Logs are the last lines of its containers, at most 200, in their order.
	Logs []Change
}
