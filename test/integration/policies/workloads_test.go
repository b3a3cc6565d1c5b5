// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const workloadsAccount = "seamark-workloads"

func owner(apiVersion, kind, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: types.UID(uid), Controller: ptr.To(true)}
}

// The owners of pods in the tests. No garbage collector runs that would look for them.
var (
	cloneSet    = owner("apps.kruise.io/v1alpha1", "CloneSet", "c")
	statefulSet = owner("apps.kruise.io/v1beta1", "StatefulSet", "s")
	olderSet    = owner("apps.kruise.io/v1alpha1", "StatefulSet", "s")
	replicaSet  = owner("apps/v1", "ReplicaSet", "r")
	builtIn     = owner("apps/v1", "StatefulSet", "b")
	similar     = owner("apps.kruise.io.example.com/v1", "CloneSet", "e")
	daemonSet   = owner("apps.kruise.io/v1alpha1", "DaemonSet", "d")
	daemonBeta  = owner("apps.kruise.io/v1beta1", "DaemonSet", "d")
	otherDaemon = owner("apps.kruise.io/v1alpha1", "DaemonSet", "o")
	builtInNode = owner("apps/v1", "DaemonSet", "n")
	otherKind   = owner("apps.kruise.io/v1alpha1", "UnitedDeployment", "u")
	broadcast   = owner("apps.kruise.io/v1beta1", "BroadcastJob", "j")
	helper      = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "helper", UID: "h"}
	second      = metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "owner", UID: "2"}
)

func podOf(namespace string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "pod-", OwnerReferences: owners, Finalizers: []string{"example.com/hook"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "busybox",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
}

type podWrite func(ctx context.Context, c client.Client, pod *corev1.Pod) error

// patched patches the pod with JSON, or a subresource if it is not empty.
func patched(subresource, patch string) podWrite {
	return func(ctx context.Context, c client.Client, pod *corev1.Pod) error {
		if subresource == "" {
			return c.Patch(ctx, pod, env.MergePatch(patch))
		}
		return c.SubResource(subresource).Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
}

func withOwners(owners ...metav1.OwnerReference) podWrite {
	return func(ctx context.Context, c client.Client, pod *corev1.Pod) error {
		before := pod.DeepCopy()
		pod.OwnerReferences = owners
		return c.Patch(ctx, pod, client.MergeFrom(before))
	}
}

func created(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Create(ctx, podOf(pod.Namespace, pod.OwnerReferences...))
}

func tried(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Create(ctx, podOf(pod.Namespace, pod.OwnerReferences...), client.DryRunAll)
}

func deleted(ctx context.Context, c client.Client, pod *corev1.Pod) error { return c.Delete(ctx, pod) }

func deletedAll(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(pod.Namespace))
}

func evicted(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
}

func updated(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pod.Labels = map[string]string{"a": "b"}
	return c.Update(ctx, pod)
}

// labelled gives the pod the label of pods that seamark-workloads has created, before it is written.
func labelled(write podWrite) podWrite {
	return func(ctx context.Context, c client.Client, pod *corev1.Pod) error {
		if err := server.Client.Patch(ctx, pod, env.MergePatch(`{"metadata": {"labels": {"`+pub.WorkloadKey+`": "CloneSet"}}}`)); err != nil {
			return err
		}
		return write(ctx, c, pod)
	}
}

func createdLabelled(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	copied := podOf(pod.Namespace, pod.OwnerReferences...)
	copied.Labels = map[string]string{pub.WorkloadKey: "CloneSet"}
	return c.Create(ctx, copied)
}

// granted returns a namespace in which a RoleBinding lets seamark-workloads write.
func granted(t *testing.T) string {
	t.Helper()
	namespace := server.Namespace(t)
	server.GrantWorkloads(t, namespace)
	return namespace
}

// TestWorkloadsWriteOnlyPodsOfTheirSets uses the token of seamark-workloads with its own rights, and
// accounts of that name with all rights, so that only the policy rejects their requests.
func TestWorkloadsWriteOnlyPodsOfTheirSets(t *testing.T) {
	t.Parallel()
	program, _ := clientOf(t, server, server.Component(t, workloadsAccount))
	// Where there is no RoleBinding, the account has no rights. Here, there are RoleBindings everywhere.
	server.GrantWorkloads(t, "kube-system")
	server.GrantWorkloads(t, env.SystemNamespace)
	elsewhere := granted(t)
	config := server.ServiceAccount(t, elsewhere, workloadsAccount, nil)
	server.GrantAll(t, elsewhere, workloadsAccount)
	unlimited, _ := clientOf(t, server, config)
	shared := granted(t)
	const (
		foreign  = "the controller of a pod that seamark-workloads writes must be"
		replace  = "and not replace its owners"
		excluded = "cannot write pods in its own namespace and in those of workloads.excludedNamespaces"
	)
	for what, c := range map[string]client.Client{"own rights": program, "all rights": unlimited} {
		eventually(t, "policy in effect with "+what, func(ctx context.Context) error {
			return rejectedWith(foreign)(c.Create(ctx, podOf(shared), client.DryRunAll))
		})
	}
	type owners = []metav1.OwnerReference
	label := patched("", `{"metadata": {"labels": {"a": "b"}}}`)
	condition := patched("status", `{"status": {"conditions": [{"type": "example.com/a", "status": "True"}]}}`)
	join := `{"metadata": {"labels": {"` + pub.WorkloadKey + `": "CloneSet"}}}`
	leave := `{"metadata": {"labels": {"` + pub.WorkloadKey + `": null}}}`
	finalizers := `{"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hook"]}}`
	resize := patched("resize", `{"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}`)
	for name, test := range map[string]struct {
		as        client.Client
		namespace string
		owners    owners
		write     podWrite
		want      string
	}{
		"create for a CloneSet":          {program, "", owners{cloneSet}, created, ""},
		"create for a StatefulSet":       {program, "", owners{helper, statefulSet}, created, ""},
		"create for an older version":    {program, "", owners{olderSet}, created, ""},
		"create for a DaemonSet":         {program, "", owners{daemonSet}, created, ""},
		"create for a BroadcastJob":      {program, "", owners{broadcast}, created, ""},
		"create for apps/v1 DaemonSet":   {program, "", owners{builtInNode}, created, foreign},
		"create without an owner":        {program, "", nil, created, foreign},
		"create for a ReplicaSet":        {program, "", owners{replicaSet}, created, foreign},
		"create for apps/v1 StatefulSet": {program, "", owners{builtIn}, created, foreign},
		"create for a similar group":     {program, "", owners{similar}, created, foreign},
		"create for another kind":        {program, "", owners{otherKind}, created, foreign},
		"create without a controller":    {program, "", owners{second}, created, foreign},
		"create without a RoleBinding":   {program, server.Namespace(t), owners{cloneSet}, created, `cannot create resource "pods"`},
		"status without a RoleBinding":   {program, server.Namespace(t), owners{cloneSet}, condition, `cannot patch resource "pods/status"`},
		"create in kube-system":          {program, "kube-system", owners{cloneSet}, created, excluded},
		"create in its own namespace":    {program, env.SystemNamespace, owners{cloneSet}, created, excluded},
		"try in its own namespace":       {program, env.SystemNamespace, nil, tried, ""},
		"try in another namespace":       {program, "", nil, tried, foreign},
		"create with the same name":      {unlimited, elsewhere, owners{cloneSet}, created, excluded},

		"patch":                      {program, "", owners{cloneSet, helper}, label, ""},
		"patch status":               {program, "", owners{statefulSet}, condition, ""},
		"patch for an older version": {program, "", owners{olderSet}, label, ""},
		"patch of a DaemonSet":       {program, "", owners{daemonSet}, label, ""},
		"patch of a BroadcastJob":    {program, "", owners{broadcast}, label, ""},
		"patch of a built-in one":    {program, "", owners{builtInNode}, label, foreign},
		"resize":                     {program, "", owners{cloneSet}, resize, ""},
		"patch without an owner":     {program, "", nil, label, foreign},
		"patch of a ReplicaSet":      {program, "", owners{replicaSet}, label, foreign},
		"patch without a controller": {program, "", owners{second}, label, foreign},
		"status of a ReplicaSet":     {program, "", owners{replicaSet}, condition, foreign},
		"resize of a ReplicaSet":     {program, "", owners{replicaSet}, resize, foreign},
		"patch in kube-system":       {program, "kube-system", owners{cloneSet}, label, excluded},
		"add a finalizer": {program, "", owners{cloneSet},
			patched("", `{"metadata": {"finalizers": ["example.com/hook", "example.com/b"]}}`), ""},
		"remove a finalizer": {program, "", owners{cloneSet}, patched("", `{"metadata": {"finalizers": null}}`), "metadata.finalizers"},

		"adopt":                       {program, "", owners{helper}, withOwners(helper, cloneSet), ""},
		"adopt as one of its owners":  {program, "", owners{second}, withOwners(second, statefulSet), ""},
		"adopt and lose an owner":     {program, "", owners{helper}, withOwners(cloneSet), replace},
		"adopt from a ReplicaSet":     {program, "", owners{replicaSet}, withOwners(cloneSet), replace},
		"release":                     {program, "", owners{helper, cloneSet}, withOwners(helper), ""},
		"release to a ReplicaSet":     {program, "", owners{cloneSet}, withOwners(replicaSet), replace},
		"release to an owner":         {program, "", owners{cloneSet}, withOwners(second), replace},
		"exchange the controller":     {program, "", owners{cloneSet}, withOwners(statefulSet), replace},
		"change the version":          {program, "", owners{helper, daemonBeta}, withOwners(helper, daemonSet), ""},
		"exchange the DaemonSet":      {program, "", owners{daemonBeta}, withOwners(otherDaemon), replace},
		"adopt from a built-in one":   {program, "", owners{builtInNode}, withOwners(daemonSet), replace},
		"add an owner":                {program, "", owners{cloneSet}, withOwners(cloneSet, helper), replace},
		"remove an owner":             {program, "", owners{cloneSet, helper}, withOwners(cloneSet), replace},
		"remove owners of a stranger": {program, "", owners{replicaSet}, withOwners(), foreign},

		"delete":                  {program, "", owners{cloneSet}, deleted, ""},
		"delete without an owner": {program, "", nil, deleted, foreign},
		"delete of a ReplicaSet":  {program, "", owners{replicaSet}, deleted, foreign},
		"delete in kube-system":   {program, "kube-system", owners{statefulSet}, deleted, excluded},
		"delete a collection":     {program, "", owners{cloneSet}, deletedAll, `cannot deletecollection resource "pods"`},
		"update":                  {program, "", owners{cloneSet}, updated, `cannot update resource "pods"`},
		"evict":                   {program, "", owners{cloneSet}, evicted, `cannot create resource "pods/eviction"`},

		// Only deletions and status writes of pods that have the label, before and after, are not evaluated.
		"delete with the label":         {program, "", owners{replicaSet}, labelled(deleted), ""},
		"status with the label":         {program, "", owners{replicaSet}, labelled(condition), ""},
		"status that adds the label":    {program, "", owners{replicaSet}, patched("status", join), foreign},
		"status that removes the label": {program, "", owners{replicaSet}, labelled(patched("status", leave)), foreign},
		"finalizer in the status":       {program, "", owners{cloneSet}, patched("status", finalizers), "metadata.finalizers"},
		"the same with the label":       {program, "", owners{cloneSet}, labelled(patched("status", finalizers)), ""},
		"create with the label":         {program, "", owners{replicaSet}, createdLabelled, foreign},
		"patch with the label":          {program, "", owners{replicaSet}, labelled(label), foreign},
		"patch that adds the label":     {program, "", owners{replicaSet}, patched("", join), foreign},
		"resize with the label":         {program, "", owners{replicaSet}, labelled(resize), foreign},

		"delete a collection of a ReplicaSet": {unlimited, "", owners{replicaSet}, deletedAll, foreign},
		"update of a ReplicaSet":              {unlimited, "", owners{replicaSet}, updated, foreign},
		"evict a pod of a ReplicaSet":         {unlimited, "", owners{replicaSet}, evicted, foreign},
		"update with all rights":              {unlimited, "", owners{cloneSet}, updated, ""},
		"another user":                        {server.Client, "", owners{replicaSet}, deleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.namespace == "" {
				test.namespace = granted(t)
			}
			pod := podOf(test.namespace, test.owners...)
			expect.NoError(t, server.Client.Create(t.Context(), pod))
			expect.Success(t, rejectedWith(test.want)(test.write(t.Context(), test.as, pod)))
		})
	}
}
