// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the types of PodProbeMarkers and of all workloads except StatefulSets, group apps.kruise.io,
// version v1alpha1.
//
// All fields of OpenKruise's types are present with the same names and types, so that
// existing manifests and clients work unchanged. Fields that Seamark adds are optional, and
// their documentation says so.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1alpha1
