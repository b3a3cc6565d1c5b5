// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds that seamark-workloads serves. The programs, the commands and the generators
// range over it, so that a new kind needs a row here, and a constructor in package workloads.
package kinds

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
)

// Role is what the objects of a kind do with pods.
type Role string

const (
	// Set is the role of a kind whose objects run pods until they are deleted, and update them.
	Set Role = "set"
	// Job is the role of a kind whose objects create pods, or other jobs, that end.
	Job Role = "job"
	// Injector is the role of a kind whose objects change pods of others.
	Injector Role = "injector"
)

// Object has the methods of client.Object. The agent reads this table and must not link controller-runtime.
type Object interface {
	metav1.Object
	runtime.Object
}

// List has the methods of client.ObjectList.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Kind is a kind that seamark-workloads serves.
type Kind struct {
	// GroupVersionKind is the kind in the version that the API server stores.
	schema.GroupVersionKind
	// Resource is the plural name, in lower case.
	Resource string
	// OtherVersions are the other versions of the group that the API server serves.
	OtherVersions []string
	// ShortNames are the short names that commands accept, those of the CustomResourceDefinition and others.
	ShortNames []string
	// ClusterScoped is whether its objects belong to no namespace.
	ClusterScoped bool
	// Role is what its objects do.
	Role Role
	// HasReplicas is whether its objects have spec.replicas.
	HasReplicas bool
	// PerNode is whether its objects create a pod per node.
	PerNode bool
	// PausedField is the path of the field that pauses an object, empty if there is none.
	PausedField string
	// New and NewList return an empty object, and an empty list, of the stored version.
	New     func() Object
	NewList func() List
	// ConfigName is the name of its controller in the configuration of seamark-workloads, and Controller returns the
	// controller from it.
	ConfigName string
	Controller func(c *configv1alpha1.WorkloadControllers) *configv1alpha1.WorkloadController
	// ConfigFolder is the folder below config/ of the roles of its controller.
	ConfigFolder string
	// Policy is the admission policy that is installed with its controller. Its name is empty if there is none.
	Policy Policy
}

// Policy is a ValidatingAdmissionPolicy.
type Policy struct {
	Name string
	// ChartValue is the value of the chart that enforces it, empty if it is always enforced.
	ChartValue string
	// Risk is what is possible without the policy.
	Risk string
}

// Definition returns the name of the CustomResourceDefinition.
func (k *Kind) Definition() string { return k.Resource + "." + k.Group }

// Served returns the versions that the API server serves, the stored one first.
func (k *Kind) Served() []schema.GroupVersion {
	var served []schema.GroupVersion
	for _, version := range k.Versions() {
		served = append(served, schema.GroupVersion{Group: k.Group, Version: version})
	}
	return served
}

// Versions returns the names of the versions that the API server serves, the stored one first.
func (k *Kind) Versions() []string { return append([]string{k.Version}, k.OtherVersions...) }

// Serves reports whether the API server serves the kind and version.
func (k *Kind) Serves(kind schema.GroupVersionKind) bool {
	return kind.Kind == k.Kind && slices.Contains(k.Served(), kind.GroupVersion())
}

// CreatesPods reports whether its objects create pods.
func (k *Kind) CreatesPods() bool { return k.Role == Set || k.PerNode }

// Table returns all kinds, in the order in which commands list them.
func Table() []Kind {
	type controllers = configv1alpha1.WorkloadControllers
	type controller = configv1alpha1.WorkloadController
	alpha, beta := v1alpha1.GroupVersion(), v1beta1.GroupVersion()
	return []Kind{
		{
			GroupVersionKind: alpha.WithKind("CloneSet"), Resource: "clonesets", ShortNames: []string{"clone"}, Role: Set, HasReplicas: true,
			New: func() Object { return &v1alpha1.CloneSet{} }, NewList: func() List { return &v1alpha1.CloneSetList{} },
			PausedField: "spec.updateStrategy.paused",
			ConfigName:  "cloneSet", Controller: func(c *controllers) *controller { return &c.CloneSet }, ConfigFolder: "workloads",
		},
		{
			GroupVersionKind: beta.WithKind("StatefulSet"), Resource: "statefulsets", ShortNames: []string{"sts", "asts"}, Role: Set, HasReplicas: true,
			OtherVersions: []string{alpha.Version}, PausedField: "spec.updateStrategy.rollingUpdate.paused",
			New: func() Object { return &v1beta1.StatefulSet{} }, NewList: func() List { return &v1beta1.StatefulSetList{} },
			ConfigName: "statefulSet", Controller: func(c *controllers) *controller { return &c.StatefulSet }, ConfigFolder: "workloads",
		},
		{
			GroupVersionKind: alpha.WithKind("DaemonSet"), Resource: "daemonsets", ShortNames: []string{"daemon", "ads", "ds"}, Role: Set, PerNode: true,
			OtherVersions: []string{beta.Version}, PausedField: "spec.updateStrategy.rollingUpdate.paused",
			New: func() Object { return &v1alpha1.DaemonSet{} }, NewList: func() List { return &v1alpha1.DaemonSetList{} },
			ConfigName: "daemonSet", Controller: func(c *controllers) *controller { return &c.DaemonSet }, ConfigFolder: "daemonsets",
		},
		{
			GroupVersionKind: alpha.WithKind("SidecarSet"), Resource: "sidecarsets", Role: Injector, ClusterScoped: true,
			OtherVersions: []string{beta.Version}, PausedField: "spec.updateStrategy.paused",
			New: func() Object { return &v1alpha1.SidecarSet{} }, NewList: func() List { return &v1alpha1.SidecarSetList{} },
			ConfigName: "sidecarSet", Controller: func(c *controllers) *controller { return &c.SidecarSet }, ConfigFolder: "sidecarsets",
			Policy: Policy{
				Name: "seamark-sidecarset-author", ChartValue: "sidecarSets.authorEnforcement",
				Risk: "who can write SidecarSets can run containers in all pods",
			},
		},
		{
			GroupVersionKind: alpha.WithKind("AdvancedCronJob"), Resource: "advancedcronjobs", ShortNames: []string{"acj"}, Role: Job,
			OtherVersions: []string{beta.Version}, PausedField: "spec.paused",
			New: func() Object { return &v1alpha1.AdvancedCronJob{} }, NewList: func() List { return &v1alpha1.AdvancedCronJobList{} },
			ConfigName: "advancedCronJob", Controller: func(c *controllers) *controller { return &c.AdvancedCronJob }, ConfigFolder: "cronjobs",
			Policy: Policy{
				Name: "seamark-workloads-jobs",
				Risk: "seamark-workloads could create and delete all Jobs",
			},
		},
		{
			GroupVersionKind: alpha.WithKind("BroadcastJob"), Resource: "broadcastjobs", ShortNames: []string{"bcj"}, Role: Job, PerNode: true,
			OtherVersions: []string{beta.Version}, PausedField: "spec.paused",
			New: func() Object { return &v1alpha1.BroadcastJob{} }, NewList: func() List { return &v1alpha1.BroadcastJobList{} },
			ConfigName: "broadcastJob", Controller: func(c *controllers) *controller { return &c.BroadcastJob }, ConfigFolder: "broadcastjobs",
		},
		{
			GroupVersionKind: alpha.WithKind("ImagePullJob"), Resource: "imagepulljobs", Role: Job, PerNode: true, OtherVersions: []string{beta.Version},
			New: func() Object { return &v1alpha1.ImagePullJob{} }, NewList: func() List { return &v1alpha1.ImagePullJobList{} },
			ConfigName: "imagePullJob", Controller: func(c *controllers) *controller { return &c.ImagePullJob }, ConfigFolder: "imagepulls",
			Policy: Policy{
				Name: "seamark-imagepulljob-author", ChartValue: "workloads.imagePullJobAuthorEnforcement",
				Risk: "who can write ImagePullJobs can use the pull secrets of a namespace without the right to create pods",
			},
		},
	}
}

// ByGroupKind returns the row of a kind of the group in any version, nil if there is none.
func ByGroupKind(kind schema.GroupKind) *Kind {
	return find(func(k *Kind) bool { return k.GroupKind() == kind })
}

// ByName returns the row with the name as users write it, such as daemonset, daemonsets.apps.kruise.io or ads, nil if there is
// none.
func ByName(name string) *Kind {
	name = strings.TrimSuffix(strings.ToLower(name), "."+v1alpha1.GroupName)
	return find(func(k *Kind) bool {
		return name == strings.ToLower(k.Kind) || name == k.Resource || slices.Contains(k.ShortNames, name)
	})
}

func find(matches func(k *Kind) bool) *Kind {
	table := Table()
	for i := range table {
		if matches(&table[i]) {
			return &table[i]
		}
	}
	return nil
}
