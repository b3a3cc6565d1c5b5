// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

const (
	// CloneSetInstanceID is the label of pods and claims that contains the instance ID of the pod: 5
	// characters. The name of the pod is the name of the set, a hyphen and the ID.
	CloneSetInstanceID = "apps.kruise.io/cloneset-instance-id"

	// CloneSetScalingExcludePreparingDeleteKey is the CloneSet label that, if it is "true", excludes
	// pods in the state PreparingDelete from the number of replicas: the set does not wait for them
	// before it creates their replacements.
	CloneSetScalingExcludePreparingDeleteKey = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

	// PodSerialAnnotationKey is the pod annotation that contains the serial number of a pod of a
	// CloneSet, from which the instance ID is computed.
	PodSerialAnnotationKey = "seamark.dev/pod-serial"

	// CloneSetClaimTemplatesHashKey is the annotation of a ControllerRevision that contains the hash of
	// volumeClaimTemplates when the revision became the update revision, empty if there were none.
	CloneSetClaimTemplatesHashKey = "kruise.io/cloneset-volumeclaimtemplate-hash"

	// DefaultCloneSetMaxUnavailable is the default of updateStrategy.maxUnavailable of a CloneSet.
	DefaultCloneSetMaxUnavailable = "20%"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=clone
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="The desired number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedReplicas`,description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_READY",type=integer,JSONPath=`.status.updatedReadyReplicas`,description="The number of pods of the update revision that are ready."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type=integer,JSONPath=`.status.updatedAvailableReplicas`,description="The number of pods of the update revision that are available."
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyReplicas`,description="The number of pods that are ready."
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.replicas`,description="The number of pods."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="The images of the template."
// +kubebuilder:printcolumn:name="SELECTOR",type=string,priority=1,JSONPath=`.status.labelSelector`,description="The selector of the pods."

// CloneSet runs a number of pods of one template. It updates them in place or by recreating them, in
// the order of a priority, and deletes idle pods before busy pods.
type CloneSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods of the set, and how they are scaled and updated.
	// +required
	Spec CloneSetSpec `json:"spec,omitempty"`

	// status is the status of the set, set by Seamark. Until then, observedGeneration is -1, so that clients do not take a set
	// without a status for one that is ready.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status CloneSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CloneSetList is a list of CloneSets.
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of CloneSets.
	Items []CloneSet `json:"items"`
}

// CloneSetSpec is the desired state of a CloneSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds == 2147483647 || self.progressDeadlineSeconds > (has(self.minReadySeconds) ? self.minReadySeconds : 0)",fieldPath=".progressDeadlineSeconds",message="must be greater than minReadySeconds"
type CloneSetSpec struct {
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

	// template is the template of the pods.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// volumeClaimTemplates are the templates of the claims of each pod, at most 32. The name of a claim
	// is the name of the template, a hyphen, and the name of the pod. A claim is deleted with its pod.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// scaleStrategy defines how pods are created and deleted.
	// +optional
	// +kubebuilder:default={}
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// updateStrategy defines how pods are updated when the template changes.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// revisionHistoryLimit is the maximum number of old revisions that are kept, at least 0.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// minReadySeconds is the time in seconds for which a pod must be ready before it counts as
	// available, at least 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// lifecycle contains the hooks with which other programs delay the deletion and the in-place update
	// of pods, and until which new pods do not count as available.
	// +optional
	Lifecycle *pub.Lifecycle `json:"lifecycle,omitempty"`

	// progressDeadlineSeconds is the time in seconds within which all pods must be updated and available
	// after a change, greater than minReadySeconds. After it, the condition Progressing is False, and
	// Stalled is True. While the update is paused, or no pod more may be updated because of partition,
	// the time does not count. If it is not set, or 2147483647, the set does not have the condition
	// Progressing.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy defines how pods are created and deleted.
type CloneSetScaleStrategy struct {
	// podsToDelete are names of pods to delete, at most 5000. If replicas is lowered at the same time,
	// they are deleted before other pods; otherwise they are replaced. Names without a pod have no
	// effect.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PodsToDelete []string `json:"podsToDelete,omitempty"`

	// maxUnavailable is the maximum number of pods that may be unavailable while missing pods are
	// created: a number, at least 1, or a percentage of replicas, 1% to 100%, rounded up. It does not
	// limit deletions. If it is not set, all missing pods are created at once.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// disablePVCReuse creates new claims for pods that replace other pods. By default, a new pod uses
	// the claims that a deleted pod left.
	// +optional
	DisablePVCReuse bool `json:"disablePVCReuse,omitempty"`

	// excludePreparingDelete excludes pods in the state PreparingDelete from the number of replicas. The label
	// apps.kruise.io/cloneset-scaling-exclude-preparing-delete with the value "true" does the same.
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// CloneSetUpdateStrategy defines how pods are updated when the template changes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !(string(self.maxUnavailable) in ['0', '0%']) || !has(self.maxSurge) || !(string(self.maxSurge) in ['0', '0%'])",fieldPath=".maxUnavailable",message="must not be 0 if maxSurge is 0: no pod could be updated"
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('ReCreate') != 'InPlaceOnly' || string(self.maxSurge) in ['0', '0%']",fieldPath=".maxSurge",message="must be 0 if type is InPlaceOnly: no pod is created for an update in place"
type CloneSetUpdateStrategy struct {
	// type is ReCreate, InPlaceIfPossible, InPlaceOnly or OnDelete. With OnDelete, a pod is updated when
	// another client deletes it, or requests its deletion from the set.
	// +optional
	// +kubebuilder:default=ReCreate
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

	// partition is the number of pods that keep the old revision: a number, at least 0, or a
	// percentage of replicas, 0% to 100%, rounded up. A percentage other than 100% keeps at most
	// replicas - 1 pods.
	// +optional
	// +kubebuilder:default=0
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is the maximum number of pods that may be unavailable during an update: a number,
	// at least 0, or a percentage of replicas, 0% to 100%, rounded up if maxSurge is 0 and otherwise
	// down. It must not be 0 if maxSurge is 0.
	// +optional
	// +kubebuilder:default="20%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the maximum number of pods above replicas during an update or while named pods are
	// deleted: a number, at least 0, or a percentage of replicas, 0% to 999%, rounded up. It must be 0
	// if type is InPlaceOnly.
	// +optional
	// +kubebuilder:default=0
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// paused stops the update. Scaling continues.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// priorityStrategy orders the pods of an update by their labels.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads the pods with the same label over the update, so that they are not
	// updated one after the other. It applies after priorityStrategy. At most 16 labels.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=16
	ScatterStrategy UpdateScatterStrategy `json:"scatterStrategy,omitempty"`

	// inPlaceUpdateStrategy contains the parameters of in-place updates.
	// +optional
	InPlaceUpdateStrategy *pub.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSetUpdateStrategyType is how a CloneSet updates pods.
//
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly;OnDelete
type CloneSetUpdateStrategyType string

const (
	// RecreateCloneSetUpdateStrategyType deletes pods and creates new ones.
	RecreateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "ReCreate"
	// InPlaceIfPossibleCloneSetUpdateStrategyType updates pods in place if the change permits it, and
	// otherwise recreates them.
	InPlaceIfPossibleCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetUpdateStrategyType updates pods in place, and does not update them if the
	// change does not permit it.
	InPlaceOnlyCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceOnly"
	// OnDeleteCloneSetUpdateStrategyType updates no pods: a pod that replaces a deleted one has the new
	// revision.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// UpdateScatterStrategy are the labels whose pods are spread over an update.
type UpdateScatterStrategy []UpdateScatterTerm

// UpdateScatterTerm is a label whose pods are spread over an update.
type UpdateScatterTerm struct {
	// key is the label key.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// value is the label value.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}

// CloneSetStatus is the observed state of a CloneSet.
type CloneSetStatus struct {
	// observedGeneration is the generation of the spec that the status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for minReadySeconds and are in the
	// state Normal.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of pods of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of pods of the update revision that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of pods of the update revision that have been ready for
	// minReadySeconds and are in the state Normal.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// expectedUpdatedReplicas is the number of pods that are to have the update revision: replicas -
	// partition.
	// +optional
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas,omitempty"`

	// updateRevision is the name of the revision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// currentRevision is the name of the revision that all pods had last.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// collisionCount is the number of collisions of revision names. It is part of the hash in the name
	// of new revisions.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which clients read to wait for the set, FailedScale
	// and FailedUpdate, which are True while pods cannot be created, deleted or updated, and, with
	// progressDeadlineSeconds, Progressing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []CloneSetCondition `json:"conditions,omitempty"`

	// labelSelector is the selector of the pods as a string, for autoscalers.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// podSerial is the highest serial number of the pods that the set has created. It prevents that a
	// new pod gets the name of a deleted pod. Seamark adds this field.
	// +optional
	PodSerial int64 `json:"podSerial,omitempty"`
}

// CloneSetConditionType is the type of a CloneSet condition.
type CloneSetConditionType string

const (
	// CloneSetConditionFailedScale is True while pods or claims cannot be created or deleted.
	CloneSetConditionFailedScale CloneSetConditionType = "FailedScale"
	// CloneSetConditionFailedUpdate is True while pods cannot be updated.
	CloneSetConditionFailedUpdate CloneSetConditionType = "FailedUpdate"
	// CloneSetConditionTypeProgressing is False when progressDeadlineSeconds have passed since the
	// beginning of an update or of a change of replicas, and True otherwise.
	CloneSetConditionTypeProgressing CloneSetConditionType = "Progressing"
)

// CloneSetConditionReason is the reason of the condition Progressing.
type CloneSetConditionReason string

const (
	// CloneSetProgressUpdated is the reason while pods are missing, not updated or not available.
	CloneSetProgressUpdated CloneSetConditionReason = "CloneSetUpdated"
	// CloneSetProgressDeadlineExceeded is the reason when this has taken progressDeadlineSeconds.
	CloneSetProgressDeadlineExceeded CloneSetConditionReason = "ProgressDeadlineExceeded"
	// CloneSetProgressPaused is the reason while the update is paused.
	CloneSetProgressPaused CloneSetConditionReason = "CloneSetPaused"
	// CloneSetProgressPartitionAvailable is the reason when as many updated pods as the partition permits
	// are available.
	CloneSetProgressPartitionAvailable CloneSetConditionReason = "ProgressPartitionAvailable"
	// CloneSetAvailable is the reason when all pods are updated and available.
	CloneSetAvailable CloneSetConditionReason = "CloneSetAvailable"
)

// CloneSetCondition is a condition of a CloneSet.
type CloneSetCondition struct {
	// type is the type of the condition.
	// +required
	Type CloneSetConditionType `json:"type"`

	// status is True, False or Unknown.
	// +required
	Status corev1.ConditionStatus `json:"status"`

	// lastUpdateTime is the time of the last change of the condition. That of Progressing is also the
	// beginning of the time that progressDeadlineSeconds bounds.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// lastTransitionTime is the time of the last change of the status.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// reason is a CamelCase word for the cause.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message describes the cause.
	// +optional
	Message string `json:"message,omitempty"`
}
