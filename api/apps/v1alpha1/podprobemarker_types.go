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
	// at least one label in matchLabels or one requirement in matchExpressions, at most
	// 64 labels and 16 requirements of at most 128 values. It can't be changed: delete
	// the marker and create another.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="must hold at least one label in matchLabels or one requirement in matchExpressions"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not be changed: delete the marker and create another"
	Selector *metav1.LabelSelector `json:"selector"`

	// probes are the probes of each pod, 1 to 32. Their order matters where two of them
	// set the same key: the first wins. Neither a name nor a podConditionType may occur
	// twice.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.podConditionType) || p.podConditionType == '' || self.exists_one(q, has(q.podConditionType) && q.podConditionType == p.podConditionType))",message="must have different values of podConditionType: each may occur once in a marker"
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe and the marks that its result makes.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podConditionType) && size(self.podConditionType) > 0) || (has(self.markerPolicy) && size(self.markerPolicy) > 0)",message="must have a podConditionType, a markerPolicy, or both"
type PodContainerProbe struct {
	// name of the probe, unique within the marker: 1 to 253 letters, digits, '-', '_',
	// '.' and '/', the first and the last a letter or digit. The type of a condition
	// that Kubernetes itself sets on pods, such as Ready, is no probe's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_', '.' and '/', and begin and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="must not be a condition type that Kubernetes sets: choose a name of your own, such as game.io/idle"
	Name string `json:"name"`

	// containerName is the container that is probed, a name of at most 63 characters as
	// the pod has it. A pod without that container is not probed. Restartable init
	// containers count, other init containers and ephemeral containers do not.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a container: lower-case letters, digits and '-', and begin and end with a letter or digit"
	ContainerName string `json:"containerName"`

	// probe is what to run and how to judge it, with the fields of a pod's own probes:
	// exactly one of exec, httpGet, tcpSocket and grpc, and when to run it and how many
	// results in a row count. The probe goes to the pod itself, so that host can't be
	// set. Unset or zero means the documented default: initialDelaySeconds 0,
	// periodSeconds 10, timeoutSeconds 1, successThreshold 1, failureThreshold 3.
	// Unlike a liveness probe's, successThreshold may be more than 1, and
	// terminationGracePeriodSeconds has no effect. A port is a number from 1 to 65535
	// or the name of a port of the container; httpGet has at most 16 headers.
	// +required
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].exists_one(set, set)",message="must have exactly one of exec, httpGet, tcpSocket and grpc"
	Probe ContainerProbeSpec `json:"probe"`

	// markerPolicy gives the labels and annotations that the pod carries in a state of
	// the probe, one entry a state. In a state that no entry names, none of them: the
	// keys are removed. At least one of markerPolicy and podConditionType is needed.
	// +optional
	// +listType=map
	// +listMapKey=state
	// +kubebuilder:validation:MaxItems=2
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`

	// podConditionType is the type of the pod condition that carries the result: True
	// for Succeeded, False for Failed, Unknown for Unknown. It is a qualified name, such
	// as game.io/idle, and no type that Kubernetes itself sets, such as Ready. Without
	// it the pod gets no condition.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.qualifiedName().validate(self).hasValue()",message="must be a qualified name: an optional DNS name and '/', then 1 to 63 letters, digits, '-', '_' and '.', the first and last a letter or digit, such as game.io/idle"
	// +kubebuilder:validation:XValidation:rule="!(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="must not be a condition type that Kubernetes sets: choose a type of your own, such as game.io/idle"
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
	// +kubebuilder:validation:Enum=Succeeded;Failed
	State ProbeState `json:"state"`

	// labels that the pod carries in that state, at most 32, with keys and values as
	// Kubernetes allows them on any object.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="must have qualified names as keys: an optional DNS name and '/', then 1 to 63 letters, digits, '-', '_' and '.', the first and last a letter or digit"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations that the pod carries in that state, at most 32, with keys as
	// Kubernetes allows them on any object and values of at most 256 Ki characters.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key.lowerAscii()).hasValue())",message="must have qualified names as keys: an optional DNS name and '/', then 1 to 63 letters, digits, '-', '_' and '.', the first and last a letter or digit"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodProbeMarkerStatus is Seamark's part of a PodProbeMarker.
type PodProbeMarkerStatus struct {
	// observedGeneration is the metadata.generation of the spec that the status speaks
	// of. While it is less than the marker's own, the status is out of date.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// matchedPods is the number of pods that the marker probes: those that match the
	// selector, are bound to a node, are initialized, and neither end nor have ended.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`

	// conditions say in words what is wrong with the marker: ProbesResolved and
	// MarksExclusive, both True when nothing is. Seamark's own addition to the API.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
