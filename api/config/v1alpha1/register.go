// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupName is the API group of all types in this package.
const GroupName = "config.seamark.dev"

// GroupVersion returns the group and version of all types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}
