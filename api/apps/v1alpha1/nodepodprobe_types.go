// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=npp
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.pods`,description="Pods in the plan that the agent has in force."
// +kubebuilder:printcolumn:name="Probes",type=integer,JSONPath=`.status.probes`,description="Probes in the plan that the agent has in force."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// NodePodProbe is the plan of one node's probes and the states that the node's agent
// reports of them. It has the name of the Node, which owns it. Users read it; only
// Seamark writes it.
type NodePodProbe struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the plan, compiled by the manager from the node's pods and the markers.
	// +optional
	Spec NodePodProbeSpec `json:"spec,omitempty"`

	// status is what the node's agent reports.
	// +optional
	Status NodePodProbeStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// NodePodProbeList is a list of NodePodProbes.
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the NodePodProbes.
	Items []NodePodProbe `json:"items"`
}

// NodePodProbeSpec is the plan of one node.
type NodePodProbeSpec struct {
	// podProbes are the pods to probe, ordered by namespace, name and uid.
	// +optional
	// +listType=atomic
	PodProbes []PodProbe `json:"podProbes,omitempty"`
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

	// IP is the pod's first address, IPv4 or IPv6, to which network probes go. Empty
	// while the pod has none.
	// +optional
	IP string `json:"IP"`

	// probes of the pod, in the order of their markers' names and in a marker's order.
	// +optional
	// +listType=atomic
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is the plan of one probe, with every default and named port resolved.
type ContainerProbe struct {
	// name is the marker's name and the probe's, joined by "#".
	// +required
	Name string `json:"name"`

	// containerName is the container that is probed.
	// +required
	ContainerName string `json:"containerName"`

	// probe is what to run and how to judge it.
	// +required
	Probe ContainerProbeSpec `json:"probe"`
}

// NodePodProbeStatus is the report of one node's agent.
type NodePodProbeStatus struct {
	// observedGeneration is the metadata.generation of the plan that the agent has in
	// force. Seamark's own addition to the API.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// pods is the number of pods in the plan that the agent has in force. Seamark's
	// own addition to the API.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// probes is the number of probes in the plan that the agent has in force.
	// Seamark's own addition to the API.
	// +optional
	Probes int32 `json:"probes,omitempty"`

	// podProbeStatuses are the states of the pods that the plan names, in its order.
	// +optional
	// +listType=atomic
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`
}

// PodProbeStatus holds the states of one pod's probes.
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

	// probeStates are the states of the pod's probes. A probe without a result yet has
	// no entry.
	// +optional
	// +listType=atomic
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ContainerProbeState is the state of one probe.
type ContainerProbeState struct {
	// name is the marker's name and the probe's, joined by "#".
	// +required
	Name string `json:"name"`

	// state of the probe: Succeeded, Failed, or Unknown.
	// +required
	// +kubebuilder:validation:Enum=Succeeded;Failed;Unknown
	State ProbeState `json:"state"`

	// lastProbeTime is when the probe was last run. It is refreshed with each change,
	// and without one about every ten minutes.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty,omitzero"`

	// lastTransitionTime is when the state last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// message is what the probe said last: valid UTF-8 of at most 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// ProbeState is what is known of a probe, once its thresholds are met.
type ProbeState string

// The states of a probe.
const (
	// ProbeSucceeded means that successThreshold results in a row were successes.
	ProbeSucceeded ProbeState = "Succeeded"
	// ProbeFailed means that failureThreshold results in a row were failures, or that
	// the container does not run.
	ProbeFailed ProbeState = "Failed"
	// ProbeUnknown means that the container or the probe's handler is new and no
	// threshold has been met since.
	ProbeUnknown ProbeState = "Unknown"
)
