// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

const (
	// ProgressiveCreatePodKey is the annotation of a DaemonSet that, if it is "true", means the same as
	// scaleStrategy.partitionedScaling.
	ProgressiveCreatePodKey = "daemonset.kruise.io/progressive-create-pod"

	// ExemptUnreachableNodesKey is the annotation of a DaemonSet that, if it is "true", excludes pods of nodes with
	// the taint node.kubernetes.io/unreachable from maxUnavailable. Seamark adds it.
	ExemptUnreachableNodesKey = "seamark.dev/exempt-unreachable-nodes"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=daemon;ads
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.desiredNumberScheduled`,description="The number of nodes that fit."
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.currentNumberScheduled`,description="The number of nodes that fit and have a pod."
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.numberReady`,description="The number of nodes with a pod that is ready."
// +kubebuilder:printcolumn:name="UP-TO-DATE",type=integer,JSONPath=`.status.updatedNumberScheduled`,description="The number of nodes with a pod of the update revision."
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.numberAvailable`,description="The number of nodes with a pod that is available."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="The images of the template."

// DaemonSet runs a pod on each node that fits its template. It updates the pods in place, by recreating them, or by
// creating the new pod first, on a part of the nodes if requested.
type DaemonSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods of the set, and how they are updated.
	// +required
	Spec DaemonSetSpec `json:"spec,omitempty"`

	// status is the status of the set, set by Seamark. Until then, observedGeneration is -1, so that clients do not take a set
	// without a status for one that is ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DaemonSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// DaemonSetList is a list of DaemonSets.
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of DaemonSets.
	Items []DaemonSet `json:"items"`
}

// DaemonSetSpec is the desired state of a DaemonSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds == 2147483647 || self.progressDeadlineSeconds > (has(self.minReadySeconds) ? self.minReadySeconds : 0)",fieldPath=".progressDeadlineSeconds",message="must be greater than minReadySeconds"
type DaemonSetSpec struct {
	// selector selects the pods of the set. It must match the labels of the template, and contain at
	// least one label in matchLabels or one requirement in matchExpressions, at most 64 labels and 16
	// requirements of at most 128 values each. It is immutable: to change it, delete the set and
	// create a new one.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self.?matchLabels.orValue({})) > 0 || size(self.?matchExpressions.orValue([])) > 0",message="must contain at least one label in matchLabels or one requirement in matchExpressions"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable: delete the set and create a new one"
	Selector *metav1.LabelSelector `json:"selector"`

	// template is the template of the pods. A pod runs on each node that its nodeName, nodeSelector and required node
	// affinity select, and whose taints it tolerates. restartPolicy must be Always.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// updateStrategy defines how pods are updated when the template changes.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// minReadySeconds is the time in seconds for which a pod must be ready before it counts as
	// available, at least 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// burstReplicas is the maximum number of pods that one step creates, and the maximum number that it deletes: a
	// number, at least 1, or a percentage of the nodes that fit, 1% to 100%, rounded down, but at least to 1.
	// +optional
	// +kubebuilder:default=250
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`

	// scaleStrategy defines how pods are created.
	// +optional
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// revisionHistoryLimit is the maximum number of old revisions that are kept, at least 0.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is the time in seconds within which all pods must be updated and available
	// after a change, greater than minReadySeconds. After it, the condition Progressing is False, and
	// Stalled is True. While the update is paused, or no pod more may be updated because of partition or
	// selector, the time does not count. If it is not set, or 2147483647, there is no deadline. Seamark
	// adds this field.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// lifecycle contains the hook preDelete, with which other programs delay the deletion of pods. The hooks
	// inPlaceUpdate and preNormal are not supported.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetScaleStrategy defines how pods are created.
type DaemonSetScaleStrategy struct {
	// partitionedScaling limits the creation of pods, too, to the nodes that partition permits. By default, a node
	// without a pod gets one at once.
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategy defines how pods are updated when the template changes.
type DaemonSetUpdateStrategy struct {
	// type is RollingUpdate or OnDelete. With OnDelete, a pod is updated when another client deletes it.
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type DaemonSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate contains the parameters of the type RollingUpdate. It is always stored, because
	// clients read it without asking whether it exists. With the type OnDelete, it has no effect.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// DaemonSetUpdateStrategyType is when a DaemonSet updates pods.
type DaemonSetUpdateStrategyType string

// The types of the update strategy.
const (
	// RollingUpdateDaemonSetStrategyType updates pods when the template changes.
	RollingUpdateDaemonSetStrategyType DaemonSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteDaemonSetStrategyType updates no pods: a pod that replaces a deleted one has the new revision.
	OnDeleteDaemonSetStrategyType DaemonSetUpdateStrategyType = "OnDelete"
)

// RollingUpdateDaemonSet contains the parameters of a rolling update.
type RollingUpdateDaemonSet struct {
	// rollingUpdateType is Standard, which recreates pods, or InPlaceIfPossible, which updates pods in place if the
	// change permits it. Surging is the same as Standard with a default of 1 for maxSurge.
	// +optional
	// +kubebuilder:default=Standard
	// +kubebuilder:validation:Enum=Standard;InPlaceIfPossible;Surging
	Type RollingUpdateType `json:"rollingUpdateType,omitempty"`

	// maxUnavailable is the maximum number of nodes without an available pod during an update: a number, at least 0,
	// or a percentage of the nodes that fit, 0% to 100%, rounded up. Default 1, or 0 if maxSurge is not 0. Exactly
	// one of maxUnavailable and maxSurge must not be 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the maximum number of nodes that run a new pod next to an old one during an update: a number, at
	// least 0, or a percentage of the nodes that fit, 0% to 100%, rounded up. It must be 0 for InPlaceIfPossible.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// selector selects the nodes that the update reaches, with at most 64 labels and 16 requirements of at most 5000
	// values each. Pods of other nodes keep their revision. By default, and if it is empty, it reaches all nodes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// partition is the number of nodes that keep the old revision: a number, at least 0, or a percentage of the nodes
	// that fit, 0% to 100%, rounded up.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// paused stops the update. Nodes without a pod get one.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// RollingUpdateType is how a rolling update changes pods.
type RollingUpdateType string

// The types of a rolling update.
const (
	// StandardRollingUpdateType recreates pods.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InplaceRollingUpdateType updates pods in place if the change permits it, and otherwise recreates them.
	InplaceRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
	// SurgingRollingUpdateType is Standard with a default of 1 for maxSurge.
	SurgingRollingUpdateType RollingUpdateType = "Surging"
)

// DaemonSetStatus is the observed state of a DaemonSet.
type DaemonSetStatus struct {
	// currentNumberScheduled is the number of nodes that fit and have a pod.
	// +optional
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`

	// numberMisscheduled is the number of nodes that do not fit and have a pod.
	// +optional
	NumberMisscheduled int32 `json:"numberMisscheduled"`

	// desiredNumberScheduled is the number of nodes that fit.
	// +optional
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`

	// numberReady is the number of nodes that fit and have a pod that is ready.
	// +optional
	NumberReady int32 `json:"numberReady"`

	// observedGeneration is the generation of the spec that the status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// updatedNumberScheduled is the number of nodes that fit and have a pod of the update revision.
	// +optional
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`

	// updatedReady is the number of nodes that fit and have a pod of the update revision that is ready. Seamark adds
	// this field.
	// +optional
	UpdatedReady int32 `json:"updatedReady,omitempty"`

	// numberAvailable is the number of nodes that fit and have a pod that has been ready for minReadySeconds.
	// +optional
	NumberAvailable int32 `json:"numberAvailable,omitempty"`

	// numberUnavailable is the number of nodes that fit and have no such pod.
	// +optional
	NumberUnavailable int32 `json:"numberUnavailable,omitempty"`

	// collisionCount is the number of collisions of revision names. It is part of the hash in the name
	// of new revisions.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which clients read to wait for the set, Progressing,
	// FailedCreate, FailedUpdate, PreDownloading and SelectorMarked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []appsv1.DaemonSetCondition `json:"conditions,omitempty"`

	// daemonSetHash is the value of the label controller-revision-hash of pods of the update revision.
	// +optional
	DaemonSetHash string `json:"daemonSetHash"`

	// updateRevision is the same as daemonSetHash: its name in v1beta1 of OpenKruise.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
}

// The types of the conditions of a DaemonSet.
const (
	// DaemonSetProgressing is False while the set has pods of an old revision that it does not update: because the
	// update is paused, because of the partition, or because as many nodes as maxUnavailable permits have no
	// available pod, or because progressDeadlineSeconds have passed. With progressDeadlineSeconds, its lastTransitionTime is the
	// beginning of this time while nodes have no available pod of the update revision.
	DaemonSetProgressing appsv1.DaemonSetConditionType = "Progressing"
	// DaemonSetFailedCreate is True while pods cannot be created or deleted.
	DaemonSetFailedCreate appsv1.DaemonSetConditionType = "FailedCreate"
	// DaemonSetFailedUpdate is True while pods cannot be updated.
	DaemonSetFailedUpdate appsv1.DaemonSetConditionType = "FailedUpdate"
)
