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

// Object is client.Object of controller-runtime, which the agent does not link.
type Object interface {
	metav1.Object
	runtime.Object
}

// List is client.ObjectList of controller-runtime.
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
	// Also are the other versions of the group that the API server serves.
	Also []string
	// Short are the short names that commands accept, those of the CustomResourceDefinition and others.
	Short []string
	// Cluster is whether its objects belong to no namespace.
	Cluster bool
	// Role is what its objects do.
	Role Role
	// Replicas is whether its objects have spec.replicas.
	Replicas bool
	// PerNode is whether its objects create a pod per node.
	PerNode bool
	// New and NewList return an empty object, and an empty list, of the stored version.
	New     func() Object
	NewList func() List
	// Config is the name of its controller in the configuration of seamark-workloads, and Controller returns the
	// controller from it.
	Config     string
	Controller func(c *configv1alpha1.WorkloadControllers) *configv1alpha1.WorkloadController
	// Folder is the folder below config/ of the roles of its controller.
	Folder string
	// Policy is the admission policy that is installed with its controller. Its name is empty if there is none.
	Policy Policy
}

// Policy is a ValidatingAdmissionPolicy.
type Policy struct {
	Name string
	// Value is the value of the chart that enforces it, empty if it is always enforced.
	Value string
	// Without is what is possible without the policy.
	Without string
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
func (k *Kind) Versions() []string { return append([]string{k.Version}, k.Also...) }

// Serves reports whether the API server serves the kind and version.
func (k *Kind) Serves(kind schema.GroupVersionKind) bool {
	return kind.Kind == k.Kind && slices.Contains(k.Served(), kind.GroupVersion())
}

// Creates reports whether its objects create pods.
func (k *Kind) Creates() bool { return k.Role == Set || k.PerNode }

// Table returns all kinds, in the order in which commands list them.
func Table() []Kind {
	type controllers = configv1alpha1.WorkloadControllers
	type controller = configv1alpha1.WorkloadController
	alpha, beta := v1alpha1.GroupVersion(), v1beta1.GroupVersion()
	return []Kind{
		{
			GroupVersionKind: alpha.WithKind("CloneSet"), Resource: "clonesets", Short: []string{"clone"}, Role: Set, Replicas: true,
			New: func() Object { return &v1alpha1.CloneSet{} }, NewList: func() List { return &v1alpha1.CloneSetList{} },
			Config: "cloneSet", Controller: func(c *controllers) *controller { return &c.CloneSet }, Folder: "workloads",
		},
		{
			GroupVersionKind: beta.WithKind("StatefulSet"), Resource: "statefulsets", Short: []string{"sts", "asts"}, Role: Set, Replicas: true,
			Also: []string{alpha.Version},
			New:  func() Object { return &v1beta1.StatefulSet{} }, NewList: func() List { return &v1beta1.StatefulSetList{} },
			Config: "statefulSet", Controller: func(c *controllers) *controller { return &c.StatefulSet }, Folder: "workloads",
		},
		{
			GroupVersionKind: alpha.WithKind("DaemonSet"), Resource: "daemonsets", Short: []string{"daemon", "ads", "ds"}, Role: Set, PerNode: true,
			Also: []string{beta.Version},
			New:  func() Object { return &v1alpha1.DaemonSet{} }, NewList: func() List { return &v1alpha1.DaemonSetList{} },
			Config: "daemonSet", Controller: func(c *controllers) *controller { return &c.DaemonSet }, Folder: "daemonsets",
		},
		{
			GroupVersionKind: alpha.WithKind("SidecarSet"), Resource: "sidecarsets", Role: Injector, Cluster: true, Also: []string{beta.Version},
			New: func() Object { return &v1alpha1.SidecarSet{} }, NewList: func() List { return &v1alpha1.SidecarSetList{} },
			Config: "sidecarSet", Controller: func(c *controllers) *controller { return &c.SidecarSet }, Folder: "sidecarsets",
			Policy: Policy{
				Name: "seamark-sidecarset-author", Value: "sidecarSets.authorEnforcement",
				Without: "who can write SidecarSets can run containers in all pods",
			},
		},
		{
			GroupVersionKind: alpha.WithKind("AdvancedCronJob"), Resource: "advancedcronjobs", Short: []string{"acj"}, Role: Job,
			Also: []string{beta.Version},
			New:  func() Object { return &v1alpha1.AdvancedCronJob{} }, NewList: func() List { return &v1alpha1.AdvancedCronJobList{} },
			Config: "advancedCronJob", Controller: func(c *controllers) *controller { return &c.AdvancedCronJob }, Folder: "cronjobs",
			Policy: Policy{
				Name:    "seamark-workloads-jobs",
				Without: "seamark-workloads could create and delete all Jobs",
			},
		},
		{
			GroupVersionKind: alpha.WithKind("BroadcastJob"), Resource: "broadcastjobs", Short: []string{"bcj"}, Role: Job, PerNode: true,
			Also: []string{beta.Version},
			New:  func() Object { return &v1alpha1.BroadcastJob{} }, NewList: func() List { return &v1alpha1.BroadcastJobList{} },
			Config: "broadcastJob", Controller: func(c *controllers) *controller { return &c.BroadcastJob }, Folder: "broadcastjobs",
		},
		{
			GroupVersionKind: alpha.WithKind("ImagePullJob"), Resource: "imagepulljobs", Role: Job, PerNode: true, Also: []string{beta.Version},
			New: func() Object { return &v1alpha1.ImagePullJob{} }, NewList: func() List { return &v1alpha1.ImagePullJobList{} },
			Config: "imagePullJob", Controller: func(c *controllers) *controller { return &c.ImagePullJob }, Folder: "imagepulls",
			Policy: Policy{
				Name: "seamark-imagepulljob-author", Value: "workloads.imagePullJobAuthorEnforcement",
				Without: "who can write ImagePullJobs can use the pull secrets of a namespace without the right to create pods",
			},
		},
	}
}

// Of returns the row of a kind of the group in any version, nil if there is none.
func Of(kind schema.GroupKind) *Kind {
	return find(func(k *Kind) bool { return k.GroupKind() == kind })
}

// Named returns the row with the name as users write it, such as daemonset, daemonsets.apps.kruise.io or ads, nil if there is
// none.
func Named(name string) *Kind {
	name = strings.TrimSuffix(strings.ToLower(name), "."+v1alpha1.GroupName)
	return find(func(k *Kind) bool {
		return name == strings.ToLower(k.Kind) || name == k.Resource || slices.Contains(k.Short, name)
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
