// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ppl
// +kubebuilder:selectablefield:JSONPath=.nodeName
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.nodeName`,description="Node whose agent runs the probes."
// +kubebuilder:printcolumn:name="First pod",type=string,JSONPath=`.pods[0].name`,description="First of the planned pods."
// +kubebuilder:printcolumn:name="Generation",type=integer,JSONPath=`.metadata.generation`,description="Number of changes of this part of the plan."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.nodeName + '.') && self.metadata.name.substring(size(self.nodeName) + 1).matches('^(0|[1-9][0-9]{0,3})$')",message="metadata.name must be nodeName, a dot and the number of the slice: 0 to 9999, without leading zeros",fieldPath=".nodeName"

// ProbePlan contains the probes of a few pods on one node: a slice of the node's plan. The manager
// writes it, the node's agent runs it, and it is read-only for users. The name of a slice is the
// name of the Node, a dot and the number of the slice, and the Node owns it. ProbePlans have an
// effect if the NodePodProbe of the node has the annotation seamark.dev/probe-plans and no
// podProbes of its own.
type ProbePlan struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// nodeName is the name of the Node whose agent runs the probes. It is immutable. Field
	// selectors can use it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable"
	NodeName string `json:"nodeName"`

	// pods are the pods to probe, ordered by namespace, name and uid. A pod is in one slice only
	// and stays in it. A slice without pods is kept for the next ones, so that the generations
	// of a node's slices add up to a number that only grows. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Pods []appsv1alpha1.PodProbe `json:"pods,omitempty"`
}

// +kubebuilder:object:root=true

// ProbePlanList is a list of ProbePlans.
type ProbePlanList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ProbePlans.
	Items []ProbePlan `json:"items"`
}
