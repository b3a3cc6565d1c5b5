// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ppm
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matchedPods`,description="Pods that the marker probes."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PodProbeMarker runs custom probes in the containers of the pods it selects, and
// marks each pod with what they say: with a condition, labels and annotations.
type PodProbeMarker struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are probed, how, and how they are marked.
	// +required
	Spec PodProbeMarkerSpec `json:"spec,omitempty"`

	// status says what Seamark makes of the spec.
	// +optional
	Status PodProbeMarkerStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// PodProbeMarkerList is a list of PodProbeMarkers.
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the markers.
	Items []PodProbeMarker `json:"items"`
}

// PodProbeMarkerSpec is the user's part of a PodProbeMarker.
type PodProbeMarkerSpec struct {
	// selector picks the pods of the marker's namespace that are probed. It must hold
	// at least one label or expression and can't be changed.
	// +required
	Selector *metav1.LabelSelector `json:"selector"`

	// probes are the probes of each pod, at least one. Their order matters where two
	// of them set the same key: the first wins.
	// +required
	// +listType=map
	// +listMapKey=name
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe and the marks that its result makes.
type PodContainerProbe struct {
	// name of the probe, unique within the marker.
	// +required
	Name string `json:"name"`

	// containerName is the container that is probed. A pod without it is not probed.
	// Restartable init containers count.
	// +required
	ContainerName string `json:"containerName"`

	// probe is what to run and how to judge it, with the fields of a pod's own probes.
	// +required
	Probe ContainerProbeSpec `json:"probe"`

	// markerPolicy gives the labels and annotations that the pod carries in a state of
	// the probe. In a state that no entry names, none of them: the keys are removed.
	// At least one of markerPolicy and podConditionType is needed.
	// +optional
	// +listType=map
	// +listMapKey=state
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`

	// podConditionType is the type of the pod condition that carries the result: True
	// for Succeeded, False for Failed, Unknown for Unknown. Without it the pod gets no
	// condition.
	// +optional
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is a probe with the fields of core/v1 Probe. Unset or zero means
// the documented default: initialDelaySeconds 0, periodSeconds 10, timeoutSeconds 1,
// successThreshold 1, failureThreshold 3. terminationGracePeriodSeconds has no effect.
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeMarkerPolicy is what a pod carries while a probe is in one state.
type ProbeMarkerPolicy struct {
	// state of the probe: Succeeded or Failed.
	// +required
	State ProbeState `json:"state"`

	// labels that the pod carries in that state.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations that the pod carries in that state.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodProbeMarkerStatus is Seamark's part of a PodProbeMarker.
type PodProbeMarkerStatus struct {
	// observedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// matchedPods is the number of pods that the marker probes: those that match the
	// selector, are bound to a node, initialized, and not ending.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`

	// conditions say in words what is wrong with the marker: ProbesResolved and
	// MarksExclusive, both True when nothing is. Seamark's own addition to the API.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
