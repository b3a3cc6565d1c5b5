// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=npp
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`,description="Pods in the plan that the agent is running."
// +kubebuilder:printcolumn:name="Probes",type=integer,JSONPath=`.status.probes`,description="Probes in the plan that the agent is running."
// +kubebuilder:printcolumn:name="In force",type=integer,JSONPath=`.status.observedGeneration`,description="Generation of the plan that the agent is running: the sum of the generations of the NodePodProbe and its ProbePlans."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// NodePodProbe states where the plan of one node's probes is and which plan the node's agent is
// running. The plan is in ProbePlans (seamark.dev), to which the annotation seamark.dev/probe-plans
// refers. The agent reports the states in ProbeReports (seamark.dev). OpenKruise has both in this
// object. It is named after the Node, which owns it. It is read-only for users: only Seamark writes it.
type NodePodProbe struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the pods that are removed from the ProbePlans. OpenKruise has the plan here.
	// +optional
	Spec NodePodProbeSpec `json:"spec,omitempty"`

	// status describes the plan that the node's agent is running.
	// +optional
	Status NodePodProbeStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// NodePodProbeList is a list of NodePodProbes.
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of NodePodProbes.
	Items []NodePodProbe `json:"items"`
}

// NodePodProbeSpec is the plan of one node, as OpenKruise writes it.
type NodePodProbeSpec struct {
	// podProbes are the pods to probe. Seamark has them in ProbePlans, and removes them from here.
	// +optional
	// +listType=atomic
	PodProbes []PodProbe `json:"podProbes,omitempty"`

	// removedPods are the uids of pods that end and whose probes no longer run, although a ProbePlan still
	// has them. Added by Seamark.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	RemovedPods []string `json:"removedPods,omitempty"`
}

// PodProbe is the plan of one pod.
type PodProbe struct {
	// name of the pod.
	// +required
	Name string `json:"name"`

	// namespace of the pod.
	// +required
	Namespace string `json:"namespace"`

	// uid of the pod.
	// +required
	UID string `json:"uid"`

	// runtimeUID is the uid that the container runtime knows the pod by, if it is not that of
	// the object. It is set for static pods, whose objects are mirror pods. Added by Seamark.
	// +optional
	RuntimeUID string `json:"runtimeUID,omitempty"`

	// IP is the pod's first IP address, IPv4 or IPv6, which network probes connect to. It is
	// empty if all probes are exec probes, and while a pod that ran before has no address.
	// +optional
	IP string `json:"IP"`

	// probes of the pod, ordered by marker name and by the order within the marker.
	// +optional
	// +listType=atomic
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is the plan of one probe, with all defaults and named ports resolved.
type ContainerProbe struct {
	// name is the name of the marker and the name of the probe, joined by "#".
	// +required
	Name string `json:"name"`

	// containerName is the name of the probed container.
	// +required
	ContainerName string `json:"containerName"`

	// probe is the handler to run and how its results are evaluated.
	// +required
	Probe ContainerProbeSpec `json:"probe"`

	// publishBody is true if the message of an httpGet probe contains the body of a
	// successful response, which the marker requests with the annotation
	// seamark.dev/publish-http-body. Added by Seamark.
	// +optional
	PublishBody bool `json:"publishBody,omitempty"`

	// messageUpdates is Immediate if messages that change while the state stays the same are reported
	// at once, limited per node. Otherwise it is empty: they are limited per probe. Agents treat
	// other values as empty. Added by Seamark.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MessageUpdates MessageUpdates `json:"messageUpdates,omitempty"`

	// values are the parts of the message that mark the pod. Added by Seamark.
	// +optional
	// +listType=atomic
	Values []WatchedValue `json:"values,omitempty"`

	// startup is the startup probe of the container, with all defaults and named ports resolved, if
	// the probe waits for it after each start of the container. terminationGracePeriodSeconds is
	// the time that the container has to end if the startup probe fails. Added by Seamark.
	// +optional
	Startup *corev1.Probe `json:"startup,omitempty"`

	// plan identifies the marker of the probe: a hash of its UID. A marker that is deleted and
	// created again with the same name has another value, so the states of the old one do not
	// apply to the new one. Added by Seamark.
	// +optional
	Plan string `json:"plan,omitempty"`
}

// MessageUpdates is how messages of a probe that change while the state stays the same are reported.
type MessageUpdates string

const (
	// MessageUpdatesLimited means that each probe may report three changed messages at once, and then
	// one per minute: always the newest.
	MessageUpdatesLimited MessageUpdates = "Limited"
	// MessageUpdatesImmediate means that changed messages are reported at once: those of 110 pods of a
	// node without a delay, and then those of 10 pods per second, in turn and always the newest.
	MessageUpdatesImmediate MessageUpdates = "Immediate"
)

// IsValid reports whether the value is Limited or Immediate.
func (u MessageUpdates) IsValid() bool {
	return u == MessageUpdatesLimited || u == MessageUpdatesImmediate
}

// WatchedValue is a part of the message of a probe that marks the pod.
type WatchedValue struct {
	// state in which the value marks the pod.
	// +required
	State ProbeState `json:"state"`

	// jsonPath is the path to the value in a message that is JSON. If it is empty, the value is
	// the first line of the message.
	// +optional
	JSONPath string `json:"jsonPath,omitempty"`

	// allowedValues are the values that mark the pod. A change to or from one of them is reported
	// at once, as a change of the state is. If there are none, any value marks the pod, and its
	// changes are reported as those of other messages.
	// +optional
	// +listType=atomic
	AllowedValues []string `json:"allowedValues,omitempty"`
}

// NodePodProbeStatus describes the plan that the node's agent is running.
type NodePodProbeStatus struct {
	// observedGeneration is the generation of the plan that the agent is running: the sum of the
	// metadata.generation of the NodePodProbe and of its ProbePlans. Added by Seamark.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// pods is the number of pods in the plan that the agent is running. Added by Seamark.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// probes is the number of probes in the plan that the agent is running. Added by
	// Seamark.
	// +optional
	Probes int32 `json:"probes,omitempty"`

	// probeReports reports whether the agent reports in ProbeReports (seamark.dev). If it is
	// true, podProbeStatuses is ignored. Added by Seamark.
	// +optional
	ProbeReports bool `json:"probeReports,omitempty"`

	// podProbeStatuses are the states that the daemon of OpenKruise has reported. An agent that takes
	// over from it removes them when all of them are in ProbeReports.
	// +optional
	// +listType=atomic
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`
}

// PodProbeStatus contains the states of one pod's probes.
type PodProbeStatus struct {
	// name of the pod.
	// +required
	Name string `json:"name"`

	// namespace of the pod.
	// +required
	Namespace string `json:"namespace"`

	// uid of the pod.
	// +required
	UID string `json:"uid"`

	// probeStates are the states of the pod's probes. A probe that has no result yet has no
	// entry.
	// +optional
	// +listType=atomic
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ContainerProbeError is the reason why a probe has no current result, or fewer than its period asks for. Added by Seamark.
type ContainerProbeError struct {
	// name is the name of the marker and the name of the probe, joined by "#": at most 1024
	// characters.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`

	// reason is why the probe has no current result, or fewer than its period asks for: CannotRun,
	// WaitingForSlot, NotEnded or RateLimited. Agents of later releases may report others: at most 64
	// letters and digits that start with a letter.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Reason ProbeErrorReason `json:"reason"`

	// message describes the error: valid UTF-8 of at most 256 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// ProbeErrorReason is why a probe has no current result, or fewer than its period asks for.
type ProbeErrorReason string

// The reasons of problems of probes.
const (
	// ProbeCannotRun means that the runs of the probe have no result, for example because the
	// container does not have the program, or the body of an HTTP response is incomplete.
	ProbeCannotRun ProbeErrorReason = "CannotRun"
	// ProbeWaitingForSlot means that the probe has not run for three periods because all slots
	// that it may use are taken. Exec probes and network probes have slots of their own.
	ProbeWaitingForSlot ProbeErrorReason = "WaitingForSlot"
	// ProbeNotEnded means that the runtime has not ended an earlier run of the probe, so that
	// the probe is not run again yet.
	ProbeNotEnded ProbeErrorReason = "NotEnded"
	// ProbeRateLimited means that the probe runs less often than its period, because the probes of
	// its pod or of the node exceed the rate that the agent allows. Its results count as usual.
	ProbeRateLimited ProbeErrorReason = "RateLimited"
)

// ProbeErrorReasons returns all reasons, in alphabetical order.
func ProbeErrorReasons() []ProbeErrorReason {
	return []ProbeErrorReason{ProbeCannotRun, ProbeNotEnded, ProbeRateLimited, ProbeWaitingForSlot}
}

// ContainerProbeState is the state of one probe.
type ContainerProbeState struct {
	// name is the name of the marker and the name of the probe, joined by "#".
	// +required
	Name string `json:"name"`

	// state of the probe: Succeeded, Failed or Unknown.
	// +required
	// +kubebuilder:validation:Enum=Succeeded;Failed;Unknown
	State ProbeState `json:"state"`

	// lastProbeTime is the time of the run that led to the state or the message. Runs that
	// change neither do not update it.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty,omitzero"`

	// lastTransitionTime is the time when the state last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// plan is the plan of the probe that the state belongs to. A state with another plan than
	// the planned probe is ignored. Added by Seamark.
	// +optional
	Plan string `json:"plan,omitempty"`

	// containerID identifies the run of the container that the state belongs to: the first 13
	// characters of the ID in the container runtime. After a restart, the agent keeps the
	// state only if the container is still in that run. Added by Seamark.
	// +optional
	ContainerID string `json:"containerID,omitempty"`

	// message describes the reported result, such as the output of the probe: valid UTF-8
	// of at most 1024 bytes. It is shorter if the pod has many probes.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProbeState is the state of a probe. It changes when a threshold of consecutive results is reached
// and when the container ends or is replaced. An edit of the probe keeps it.
type ProbeState string

// The states of a probe.
const (
	// ProbeSucceeded means that successThreshold consecutive runs succeeded.
	ProbeSucceeded ProbeState = "Succeeded"
	// ProbeFailed means that failureThreshold consecutive runs failed, or that the container
	// has ended.
	ProbeFailed ProbeState = "Failed"
	// ProbeUnknown means that the container is new and no threshold has been reached yet.
	ProbeUnknown ProbeState = "Unknown"
)
