// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=prr
// +kubebuilder:selectablefield:JSONPath=.nodeName
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.nodeName`,description="Node whose agent reports."
// +kubebuilder:printcolumn:name="First pod",type=string,JSONPath=`.pods[0].name`,description="First of the reported pods."
// +kubebuilder:printcolumn:name="Written",type=date,JSONPath=`.metadata.managedFields[-1:].time`,description="Last write."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.nodeName + '.') && self.metadata.name.substring(size(self.nodeName) + 1).matches('^(0|[1-9][0-9]?|[1-3][0-9]{2})$')",message="metadata.name must be nodeName, a dot and the number of the slice: 0 to 399, without leading zeros",fieldPath=".nodeName"

// ProbeReport contains the states of the probes of a few pods on one node: a slice of the
// node's report. The node's agent writes it, and it is read-only for users. The name of a
// slice is the name of the Node, a dot and the number of the slice, 0 to 399, and the Node owns
// it.
type ProbeReport struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// nodeName is the name of the Node whose agent reports. It is immutable. Field selectors
	// can use it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable"
	NodeName string `json:"nodeName"`

	// pods are the reported pods. A pod is in one slice only and stays in it. A pod that is
	// not planned any more stays until the slice is written again, or for two minutes if its
	// containers run. Its states have no effect. If it is planned again before, they apply
	// until its agent has the plan. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Pods []PodReport `json:"pods,omitempty"`
}

// PodReport contains the states of one pod's probes.
type PodReport struct {
	// namespace of the pod.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name of the pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the pod: at most 128 characters.
	// +required
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`

	// probes are the states of the pod's probes. A probe that has no result yet has no entry. At
	// most 2048: 32 for each of 64 markers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	Probes []appsv1alpha1.ContainerProbeState `json:"probes,omitempty"`

	// errors are the probes of the pod that cannot be run, or run less often than their periods
	// ask for. An error changes neither the state of a probe nor the marks of the pod. At most 512;
	// the agent reports the first ones if there are more than fit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Errors []appsv1alpha1.ContainerProbeError `json:"errors,omitempty"`
}

// +kubebuilder:object:root=true

// ProbeReportList is a list of ProbeReports.
type ProbeReportList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ProbeReports.
	Items []ProbeReport `json:"items"`
}
