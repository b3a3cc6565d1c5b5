// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import appsv1 "k8s.io/api/apps/v1"

// StatefulSetStatus is the observed state of a StatefulSet.
type StatefulSetStatus struct {
	// observedGeneration is the generation of the spec that the status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods in the state Normal that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas"`

	// currentReplicas is the number of pods of the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas"`

	// updatedReplicas is the number of pods of the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of pods of the update revision that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`

	// updatedAvailableReplicas is the number of pods of the update revision that are counted in
	// availableReplicas.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`

	// currentRevision is the name of the revision of the pods that are not updated yet.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the name of the revision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount is the number of collisions of revision names. It is part of the hash in the name
	// of new revisions.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are Ready, Reconciling and Stalled, which clients read to wait for the set,
	// FailedCreatePod and FailedUpdatePod, which are True while pods cannot be created, deleted or
	// updated, and, with progressDeadlineSeconds, Progressing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []appsv1.StatefulSetCondition `json:"conditions,omitempty"`

	// labelSelector is the selector of the pods as a string, for autoscalers.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// volumeClaims counts the claims of the pods for each template, in the order of
	// volumeClaimTemplates.
	// +optional
	// +listType=atomic
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// VolumeClaimStatus counts the claims of one template.
type VolumeClaimStatus struct {
	// volumeClaimName is the name of the template.
	// +required
	VolumeClaimName string `json:"volumeClaimName"`

	// compatibleReplicas is the number of pods whose claim has the storage class and the access modes of
	// the template, and requests at least its size.
	// +required
	CompatibleReplicas int32 `json:"compatibleReplicas"`

	// compatibleReadyReplicas is the number of these pods whose volume has the requested size.
	// +required
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`
}

const (
	// FailedCreatePod is the type of the condition that is True while pods or claims cannot be created
	// or deleted.
	FailedCreatePod appsv1.StatefulSetConditionType = "FailedCreatePod"
	// FailedUpdatePod is the type of the condition that is True while pods cannot be updated.
	FailedUpdatePod appsv1.StatefulSetConditionType = "FailedUpdatePod"
	// StatefulSetProgressing is the type of the condition that is False when progressDeadlineSeconds have passed since the beginning
	// of an update or of a change of replicas, and True otherwise. While pods are missing, not updated or not available, its
	// lastTransitionTime is the beginning of this time.
	StatefulSetProgressing appsv1.StatefulSetConditionType = "Progressing"
)

// The reasons of the condition Progressing of a StatefulSet.
const (
	// StatefulSetProgressUpdated is the reason while pods are missing, not updated or not available.
	StatefulSetProgressUpdated = "StatefulSetUpdated"
	// StatefulSetProgressPaused is the reason while the update is paused.
	StatefulSetProgressPaused = "StatefulSetPaused"
	// StatefulSetProgressPartitionAvailable is the reason when as many updated pods as the strategy permits are available.
	StatefulSetProgressPartitionAvailable = "ProgressPartitionAvailable"
	// StatefulSetAvailable is the reason when all pods are updated and available.
	StatefulSetAvailable = "StatefulSetAvailable"
)
