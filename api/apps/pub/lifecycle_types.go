// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

import corev1 "k8s.io/api/core/v1"

const (
	// LifecycleStateKey is the pod label that contains the pod's LifecycleStateType.
	LifecycleStateKey = "lifecycle.apps.kruise.io/state"

	// LifecycleTimestampKey is the pod annotation that contains the time of the last change of the
	// state, in RFC 3339 format.
	LifecycleTimestampKey = "lifecycle.apps.kruise.io/timestamp"

	// KruisePodReadyConditionType is the readiness gate of pods that a hook can mark not ready. The
	// condition is True if no hook marks the pod not ready.
	KruisePodReadyConditionType corev1.PodConditionType = "KruisePodReady"

	// SpecifiedDeleteKey is the pod label that requests the deletion of the pod by its set, whatever
	// the value is. The set creates a replacement.
	SpecifiedDeleteKey = "apps.kruise.io/specified-delete"
)

// LifecycleStateType is the state of a pod in its set.
type LifecycleStateType string

const (
	// LifecycleStatePreparingNormal is the state of a new pod that the hook preNormal holds. The pod does
	// not count as available.
	LifecycleStatePreparingNormal LifecycleStateType = "PreparingNormal"
	// LifecycleStateNormal is the state of a pod that is neither updated in place nor deleted.
	LifecycleStateNormal LifecycleStateType = "Normal"
	// LifecycleStatePreparingUpdate is the state of a pod that the hook inPlaceUpdate holds before
	// its update.
	LifecycleStatePreparingUpdate LifecycleStateType = "PreparingUpdate"
	// LifecycleStateUpdating is the state of a pod that is being updated in place.
	LifecycleStateUpdating LifecycleStateType = "Updating"
	// LifecycleStateUpdated is the state of a pod that is updated and whose hook inPlaceUpdate is
	// not restored yet.
	LifecycleStateUpdated LifecycleStateType = "Updated"
	// LifecycleStatePreparingDelete is the state of a pod that the hook preDelete holds before its
	// deletion.
	LifecycleStatePreparingDelete LifecycleStateType = "PreparingDelete"
)

// Lifecycle contains the hooks with which other programs delay the deletion and the in-place update
// of pods, and until which new pods do not count as available.
type Lifecycle struct {
	// preDelete holds pods before they are deleted: while a pod has any handler of the hook, it stays
	// in the state PreparingDelete. The program that handles the hook removes the handlers.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`

	// inPlaceUpdate holds pods before they are updated in place: while a pod has any handler of the
	// hook, it stays in the state PreparingUpdate. After the update, the pod stays in the state
	// Updated until it has all handlers again.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preNormal holds new pods: a pod stays in the state PreparingNormal, in which it does not count as
	// available, until it has all handlers of the hook. The program that handles the hook adds the
	// handlers. markPodNotReady has no effect.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook contains the handlers of a hook. It must contain at least one handler.
type LifecycleHook struct {
	// labelsHandler are labels, at most 16. A pod has such a handler if it has the label with the same
	// value.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`

	// finalizersHandler are finalizers, at most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=316
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`

	// markPodNotReady makes a pod not ready while it is in the state PreparingDelete or
	// PreparingUpdate.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}
