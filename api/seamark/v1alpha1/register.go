// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all types in this package.
const GroupName = "seamark.dev"

// GroupVersion returns the group and version of all types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// AddToScheme registers the types of this package in scheme. It never returns an error.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &ProbePlan{}, &ProbePlanList{}, &ProbeReport{}, &ProbeReportList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
