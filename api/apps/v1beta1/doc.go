// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the types of the StatefulSet API, group apps.kruise.io,
// version v1beta1. The API server serves v1alpha1 with the same fields, without a conversion: the
// fields of OpenKruise's v1alpha1 are a subset.
//
// All fields of OpenKruise's types are present with the same names and types, so that
// existing manifests and clients work unchanged. Fields that Seamark adds are optional, and
// their documentation says so.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package v1beta1
