// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

// InPlaceUpdateStrategy contains the parameters of in-place updates.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time in seconds between marking a pod not ready and changing its
	// containers, 0 to 3600.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
}
