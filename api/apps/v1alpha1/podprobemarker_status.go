// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarkerStatus is the status of a PodProbeMarker.
type PodProbeMarkerStatus struct {
	// observedGeneration is the metadata.generation that the status is based on. If it is
	// less than the generation of the marker, the status is out of date.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// matchedPods is the number of probed pods: pods that match the selector, are bound to a
	// node, are initialized, and are not terminating or terminated.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`

	// succeeded is the sum of succeeded in probes: with one probe, a number of pods. Added by Seamark.
	// +optional
	Succeeded int64 `json:"succeeded,omitempty"`

	// failed is the sum of failed in probes. Added by Seamark.
	// +optional
	Failed int64 `json:"failed,omitempty"`

	// unknown is the sum of unknown in probes. Added by Seamark.
	// +optional
	Unknown int64 `json:"unknown,omitempty"`

	// probes count the matched pods by the state of each probe, in the order of the spec. Added by
	// Seamark.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Probes []ProbeCounts `json:"probes,omitempty"`

	// podErrors are why probes have no results in pods: at most 10, the first by name of the pod.
	// Added by Seamark.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	PodErrors []PodError `json:"podErrors,omitempty"`

	// conditions describe problems of the marker: ProbesResolved, MarksExclusive and
	// MarksApplied. They are True if there is no problem. PodsMatched is False while matchedPods is 0. MarksRemoved is False while the deletion of the marker
	// makes no progress, and names what blocks it. Added by Seamark.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProbeCounts are numbers of matched pods by the state of one probe. succeeded, failed, unknown and
// notRunning add up to the matched pods.
type ProbeCounts struct {
	// name is the name of the probe.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// succeeded is the number of pods in the state Succeeded.
	// +optional
	Succeeded int64 `json:"succeeded,omitempty"`
	// failed is the number of pods in the state Failed.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// unknown is the number of pods in the state Unknown, including stale, and those that have lost
	// their claim to exclusive marks.
	// +optional
	Unknown int64 `json:"unknown,omitempty"`
	// stale is the number of pods whose state counts as Unknown because it is stale.
	// +optional
	Stale int64 `json:"stale,omitempty"`
	// notRunning is the number of pods in which the probe has no state: it has no result yet, or
	// cannot run.
	// +optional
	NotRunning int64 `json:"notRunning,omitempty"`
	// lastTransitionTime is when the state last changed in one of the pods.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// PodError is why a probe has no results in a pod.
type PodError struct {
	// pod is the name of the pod.
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`
	// probe is the name of the probe.
	// +kubebuilder:validation:MaxLength=253
	Probe string `json:"probe"`
	// reason is the reason that the agent reports.
	Reason ProbeErrorReason `json:"reason"`
	// message describes the error, in at most 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}
