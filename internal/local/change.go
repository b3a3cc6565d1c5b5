// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Kind says what a Change is about, and so which of its fields are set.
type Kind string

// The kinds of changes.
const (
	// KindPod is a new pod or another phase; Phase is set.
	KindPod Kind = "Pod"
	// KindContainer is another state, readiness or restart count of a container;
	// Container and Status are set.
	KindContainer Kind = "Container"
	// KindProbe is a finished run of a probe, or a change of its state that no run made;
	// Container and Probe are set.
	KindProbe Kind = "Probe"
	// KindCondition is a pod condition that has come, changed its status, reason or
	// message, or gone; Condition is set.
	KindCondition Kind = "Condition"
	// KindLabel and KindAnnotation are a key that has come, changed or gone; Key and
	// Value are set.
	KindLabel      Kind = "Label"
	KindAnnotation Kind = "Annotation"
	// KindEvent is an event, as a cluster would store it; Container, where it is about
	// one, and Event are set.
	KindEvent Kind = "Event"
	// KindLog is one line that a container wrote; Container and Log are set.
	KindLog Kind = "Log"
)

// Change is one thing that happened to a pod. It is a value of its own: nothing in it is
// changed later.
type Change struct {
	// Kind says which of the fields below are set.
	Kind Kind
	// Time is when it happened.
	Time time.Time
	// Namespace and Pod name the pod.
	Namespace, Pod string
	// Container is the container that it is about; empty where it is about the pod.
	Container string

	// Phase is the pod's phase.
	Phase corev1.PodPhase
	// Status is the container's whole status.
	Status *corev1.ContainerStatus
	// Probe is the probe as it stands now.
	Probe *Probe
	// Condition is the pod's condition. Where Removed is true, it is the one that was.
	Condition *corev1.PodCondition
	// Key and Value are a label's or an annotation's. Where Removed is true, Value is the
	// one that was.
	Key, Value string
	// Removed is whether the condition, label or annotation is gone.
	Removed bool
	// Event is what the kubelet or the agent would write.
	Event *Event
	// Log is a line of output.
	Log *LogLine
}

// Event is an event on a pod.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is one word for programs, such as Unhealthy.
	Reason string
	// Message is for people.
	Message string
}

// LogLine is one line of a container's output.
type LogLine struct {
	// Stream is stdout or stderr.
	Stream string
	// Text is the line without its end, at most 16 KiB of it.
	Text string
}

// ProbeType tells the kubelet's probes and the markers' apart.
type ProbeType string

// The types of probes, by the names that events begin with in the kubelet's case.
const (
	ProbeStartup   ProbeType = "Startup"
	ProbeLiveness  ProbeType = "Liveness"
	ProbeReadiness ProbeType = "Readiness"
	ProbeMarker    ProbeType = "Marker"
)

// Probe is one probe of one container, as it stands.
type Probe struct {
	// Type is whose probe it is.
	Type ProbeType
	// Marker and Name name a marker's probe; both are empty for the kubelet's.
	Marker, Name string
	// Container is the container that is probed.
	Container string
	// Handler is exec, httpGet, tcpSocket or grpc.
	Handler string

	// Active is whether the probe is being run: the kubelet's wait for their container
	// and for its startup probe, and stop while the container is killed.
	Active bool
	// State is the judged state; empty before the first result.
	State v1alpha1.ProbeState
	// Message is that of the state.
	Message string
	// LastTransition is when State last changed; zero before the first result.
	LastTransition time.Time

	// Transition is whether this change made State what it is. It is false in a snapshot.
	Transition bool
	// Ran is whether a run made this change. It is false in a snapshot.
	Ran bool

	// Success and Output are what the newest run said, LastProbe when it ended: zero
	// before the first.
	Success   bool
	Output    string
	LastProbe time.Time
	// Error says why the newest run could tell nothing; Success and Output are then those
	// of the run before. Empty otherwise.
	Error string
	// Streak is how many runs in a row have said the same, Threshold how many it takes.
	// Both are of the newest outcome's side, and zero before the first.
	Streak, Threshold int
	// Runs is how many runs there were of the container that runs now.
	Runs int
}

// PodView is a pod as it stands.
type PodView struct {
	// Pod is a copy of the pod, with its status, as a cluster's API would show it.
	Pod *corev1.Pod
	// Probes are its probes: those of the kubelet by container, then those of the
	// markers by marker and in a marker's order.
	Probes []Probe
	// MarkedLabels and MarkedAnnotations are the keys that the markers have set.
	MarkedLabels, MarkedAnnotations []string
	// MarkedConditions are the condition types that the markers have set.
	MarkedConditions []string
	// Logs are the last lines of its containers, oldest first, at most 200.
	Logs []Change
}
