// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateBegunKey is the annotation of a ControllerRevision with the time, in RFC 3339, from which on it is
// the update revision again, after a rollback. OpenKruise does not set it.
const UpdateBegunKey = "seamark.dev/update-begun"

// UpdatePriorityStrategy orders the pods of an update by their labels. Only one of orderPriority and
// weightPriority may be set. Pods without any of the keys, and pods that no term matches, are updated
// last.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.orderPriority) && size(self.orderPriority) > 0 && has(self.weightPriority) && size(self.weightPriority) > 0)",fieldPath=".weightPriority",message="must not be set if orderPriority is set"
type UpdatePriorityStrategy struct {
	// orderPriority are label keys, at most 16. The first key that a pod has determines its level:
	// pods with an earlier key are updated before pods with a later key, and pods without any of the
	// keys are updated last. Within a level, pods are updated in descending order of the integer at
	// the end of the label value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`

	// weightPriority are weighted selectors, at most 16. Pods are updated in descending order of the
	// sum of the weights of the selectors that match them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm is a level of orderPriority.
type UpdatePriorityOrderTerm struct {
	// orderedKey is a label key, at most 317 characters.
	// +required
	// +kubebuilder:validation:MaxLength=317
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm is a weighted selector of weightPriority.
type UpdatePriorityWeightTerm struct {
	// weight is added to the priority of the pods that matchSelector matches, 1 to 100.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// matchSelector selects pods by their labels. It must not be empty, and contain at most 16 labels
	// and 8 requirements of at most 16 values each.
	// +required
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}
