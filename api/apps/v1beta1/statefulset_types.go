// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

const (
	// MaxMinReadySeconds is the maximum of updateStrategy.rollingUpdate.minReadySeconds.
	MaxMinReadySeconds = 300
	// MaxReplicas is the maximum of replicas.
	MaxReplicas = 262144
)

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=sts;asts
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="The desired number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.replicas`,description="The number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedReplicas`,description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that are ready."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="The images of the template."

// StatefulSet runs pods with stable names and claims. In addition to the StatefulSet of Kubernetes, it
// updates pods in place and in the order of a priority, reserves ordinals, and has lifecycle hooks.
type StatefulSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods of the set, and how they are scaled and updated.
	// +required
	Spec StatefulSetSpec `json:"spec,omitempty"`

	// status is the status of the set, set by Seamark. Until then, observedGeneration is -1, so that clients do not take a set
	// without a status for one that is ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status StatefulSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// StatefulSetList is a list of StatefulSets.
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of StatefulSets.
	Items []StatefulSet `json:"items"`
}

// StatefulSetSpec is the desired state of a StatefulSet.
//
// +kubebuilder:validation:XValidation:rule="(has(self.serviceName) && size(self.serviceName) > 0) == (has(oldSelf.serviceName) && size(oldSelf.serviceName) > 0) && (!has(self.serviceName) || !has(oldSelf.serviceName) || self.serviceName == oldSelf.serviceName)",fieldPath=".serviceName",message="field is immutable: delete the set and create a new one"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimUpdateStrategy) || !has(self.volumeClaimUpdateStrategy.type) || self.volumeClaimUpdateStrategy.type != 'OnPodRollingUpdate' || (has(self.volumeClaimTemplates) ? size(self.volumeClaimTemplates) : 0) == (has(oldSelf.volumeClaimTemplates) ? size(oldSelf.volumeClaimTemplates) : 0) && (!has(self.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, oldSelf.volumeClaimTemplates.exists(o, o.metadata.name == t.metadata.name)))",fieldPath=".volumeClaimTemplates",message="templates must not be added, removed or renamed if volumeClaimUpdateStrategy.type is OnPodRollingUpdate: claims follow changes of their size only"
// +kubebuilder:validation:XValidation:rule="self.podManagementPolicy == 'Parallel' || !has(self.updateStrategy.rollingUpdate) || !has(self.updateStrategy.rollingUpdate.unorderedUpdate)",fieldPath=".updateStrategy.rollingUpdate.unorderedUpdate",message="must not be set if podManagementPolicy is OrderedReady: it requires Parallel"
// +kubebuilder:validation:XValidation:rule="self.podManagementPolicy == 'Parallel' || !has(self.scaleStrategy) || !has(self.scaleStrategy.maxUnavailable) || self.scaleStrategy.maxUnavailable == 1",fieldPath=".scaleStrategy.maxUnavailable",message="must be 1 or not set if podManagementPolicy is OrderedReady: other values require Parallel"
// +kubebuilder:validation:XValidation:rule="!has(self.ordinals) || self.ordinals.start + self.replicas <= 2147483648",fieldPath=".ordinals.start",message="must be at most 2147483648 - replicas: the highest ordinal is 2147483647"
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds == 2147483647 || self.progressDeadlineSeconds > (has(self.updateStrategy.rollingUpdate) && has(self.updateStrategy.rollingUpdate.minReadySeconds) ? self.updateStrategy.rollingUpdate.minReadySeconds : 0)",fieldPath=".progressDeadlineSeconds",message="must be greater than minReadySeconds"
type StatefulSetSpec struct {
	// replicas is the desired number of pods, 0 to 262144, which is more than a cluster can run.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=262144
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the pods of the set. It must match the labels of the template, and contain at
	// least one label in matchLabels or one requirement in matchExpressions, at most 64 labels and 16
	// requirements of at most 128 values each. It is immutable: to change it, delete the set and
	// create a new one.
	// +required
	// +kubebuilder:validation:XValidation:rule="size(self.?matchLabels.orValue({})) > 0 || size(self.?matchExpressions.orValue([])) > 0",message="must contain at least one label in matchLabels or one requirement in matchExpressions"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable: delete the set and create a new one"
	Selector *metav1.LabelSelector `json:"selector"`

	// template is the template of the pods. The name of a pod is the name of the set, a hyphen, and the
	// ordinal.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// volumeClaimTemplates are the templates of the claims of each pod, at most 32. The name of a claim
	// is the name of the template, a hyphen, and the name of the pod.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// volumeClaimUpdateStrategy defines when existing claims follow a change of volumeClaimTemplates.
	// +optional
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitzero"`

	// serviceName is the name of the headless service of the set, which defines the DNS names of the
	// pods: a DNS label, at most 63 characters. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	ServiceName string `json:"serviceName,omitempty"`

	// podManagementPolicy is OrderedReady or Parallel. With OrderedReady, pods are created one after the
	// other, in the order of their ordinals, each after its predecessor is ready, and deleted in the
	// opposite order. With Parallel, they are created and deleted together. It is immutable.
	// +optional
	// +kubebuilder:default=OrderedReady
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable: delete the set and create a new one"
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// updateStrategy defines how pods are updated when the template changes.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// revisionHistoryLimit is the maximum number of old revisions that are kept, at least 0.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// progressDeadlineSeconds is the time in seconds within which all pods must be updated and available
	// after a change, greater than minReadySeconds. After it, the condition Progressing is False, and
	// Stalled is True. While the update is paused, or no pod more may be updated because of partition,
	// the time does not count. If it is not set, or 2147483647, the set does not have
	// the condition Progressing. Seamark adds this field.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// reserveOrdinals are ordinals that pods must not have, at most 10000 entries: numbers, at least 0,
	// and ranges like "3-5" that do not end below their start. A pod with a reserved ordinal is deleted,
	// and the next free ordinal is used instead.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`

	// lifecycle contains the hooks with which other programs delay the deletion and the in-place update
	// of pods.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`

	// scaleStrategy defines how pods are created.
	// +optional
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// persistentVolumeClaimRetentionPolicy defines when the claims of volumeClaimTemplates are deleted.
	// +optional
	// +kubebuilder:default={}
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// ordinals defines the first ordinal.
	// +optional
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`
}

// VolumeClaimUpdateStrategy defines when existing claims follow a change of volumeClaimTemplates.
type VolumeClaimUpdateStrategy struct {
	// type is OnDelete or OnPodRollingUpdate; if it is not set, OnDelete. With OnDelete, a claim follows
	// a change when it is deleted and created again. With OnPodRollingUpdate, the claims of a pod are
	// expanded to the sizes of the templates when it is the pod's turn in a rolling update, before the
	// pod is updated, and claims are never shrunk. Templates must then not be added, removed or renamed.
	// +optional
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// VolumeClaimUpdateStrategyType is when existing claims follow a change of volumeClaimTemplates.
//
// +kubebuilder:validation:Enum=OnDelete;OnPodRollingUpdate
type VolumeClaimUpdateStrategyType string

const (
	// OnPVCDeleteVolumeClaimUpdateStrategyType does not change existing claims.
	OnPVCDeleteVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnDelete"
	// OnPodRollingUpdateVolumeClaimUpdateStrategyType expands the claims of a pod before the pod is
	// updated.
	OnPodRollingUpdateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
)

// StatefulSetUpdateStrategy defines how pods are updated when the template changes.
type StatefulSetUpdateStrategy struct {
	// type is RollingUpdate or OnDelete. With OnDelete, a pod is updated when another client deletes it.
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate contains the parameters of the type RollingUpdate. It is always stored: clients
	// read it without asking whether it exists. With OnDelete, only minReadySeconds has an effect.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateStatefulSetStrategy contains the parameters of rolling updates.
type RollingUpdateStatefulSetStrategy struct {
	// partition is the number of pods that keep the old revision: those with the lowest ordinals, or any
	// with unorderedUpdate. At least 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is the maximum number of pods that may be unavailable during an update: a number,
	// at least 1, or a percentage of replicas, 1% to 100%, rounded down to at least 1. With OrderedReady,
	// so many pods are taken down together, and the next ones when these are ready again, one after the
	// other.
	// +optional
	// +kubebuilder:default=1
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// podUpdatePolicy is ReCreate, InPlaceIfPossible or InPlaceOnly.
	// +optional
	// +kubebuilder:default=ReCreate
	PodUpdatePolicy PodUpdateStrategyType `json:"podUpdatePolicy,omitempty"`

	// paused stops the update. Scaling continues.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// unorderedUpdate updates pods in the order of a priority instead of their ordinals. It requires
	// podManagementPolicy Parallel.
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`

	// inPlaceUpdateStrategy contains the parameters of in-place updates.
	// +optional
	InPlaceUpdateStrategy *pub.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// minReadySeconds is the time in seconds for which a pod must be ready before it counts as
	// available, 0 to 300.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=300
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy defines an update order that does not depend on ordinals.
type UnorderedUpdateStrategy struct {
	// priorityStrategy orders the pods of an update by their labels.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// PodUpdateStrategyType is how a StatefulSet updates pods.
//
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly
type PodUpdateStrategyType string

const (
	// RecreatePodUpdateStrategyType deletes pods and creates new ones.
	RecreatePodUpdateStrategyType PodUpdateStrategyType = "ReCreate"
	// InPlaceIfPossiblePodUpdateStrategyType updates pods in place if the change permits it, and
	// otherwise recreates them.
	InPlaceIfPossiblePodUpdateStrategyType PodUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyPodUpdateStrategyType updates pods in place, and does not update them if the change
	// does not permit it.
	InPlaceOnlyPodUpdateStrategyType PodUpdateStrategyType = "InPlaceOnly"
)

// StatefulSetScaleStrategy defines how pods are created.
type StatefulSetScaleStrategy struct {
	// maxUnavailable is the maximum number of pods that may be unavailable while pods are created: a
	// number, at least 1, or a percentage of replicas, 1% to 100%, rounded down to at least 1. It
	// requires podManagementPolicy Parallel unless it is 1. If it is not set, pods are created
	// together.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// PersistentVolumeClaimRetentionPolicyType is what happens to claims.
//
// +kubebuilder:validation:Enum=Retain;Delete
type PersistentVolumeClaimRetentionPolicyType string

const (
	// RetainPersistentVolumeClaimRetentionPolicyType keeps the claims.
	RetainPersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Retain"
	// DeletePersistentVolumeClaimRetentionPolicyType deletes the claims.
	DeletePersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Delete"
)

// StatefulSetPersistentVolumeClaimRetentionPolicy defines when the claims of a set are deleted.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted is Retain or Delete: what happens to the claims when the set is deleted.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled is Retain or Delete: what happens to the claims of pods that are deleted because
	// replicas is lowered.
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals defines the ordinals of a set.
type StatefulSetOrdinals struct {
	// start is the first ordinal, 0 to 2147483648 - replicas: the highest ordinal is 2147483647.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Start int32 `json:"start"`
}
