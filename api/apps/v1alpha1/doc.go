// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the wire types of the PodProbeMarker API, group
// apps.kruise.io, version v1alpha1.
//
// The types agree field for field with those of OpenKruise, so that manifests and
// clients written for it work unchanged. What Seamark adds is optional, and marked
// so in the field's documentation.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
