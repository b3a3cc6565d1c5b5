// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all types in this package. It is the group of OpenKruise,
// whose API Seamark implements.
const GroupName = "apps.kruise.io"

// GroupVersion returns the group and version of all types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// AddToScheme registers the types of this package in scheme. It never returns an error.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&PodProbeMarker{}, &PodProbeMarkerList{},
		&NodePodProbe{}, &NodePodProbeList{},
		&CloneSet{}, &CloneSetList{},
		&SidecarSet{}, &SidecarSetList{},
		&AdvancedCronJob{}, &AdvancedCronJobList{},
		&DaemonSet{}, &DaemonSetList{},
		&BroadcastJob{}, &BroadcastJobList{},
		&ImagePullJob{}, &ImagePullJobList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
