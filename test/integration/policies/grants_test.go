// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const managerAccount = "seamark-manager"

type bindingChange func(*rbacv1.RoleBinding)

func unlabelled(b *rbacv1.RoleBinding)   { b.Labels = nil }
func withoutUsers(b *rbacv1.RoleBinding) { b.Subjects = nil }

func giveRole(name string) bindingChange {
	return func(b *rbacv1.RoleBinding) { b.RoleRef.Name = name }
}

func toAccount(namespace, name string) bindingChange {
	return func(b *rbacv1.RoleBinding) {
		b.Subjects = append(b.Subjects[:0], env.ServiceAccountSubject(namespace, name))
	}
}

// TestWhoGivesWorkloadsItsRights uses the tokens of the programs with their own rights, an account with the name of the manager
// that has all rights, and an administrator.
func TestWhoGivesWorkloadsItsRights(t *testing.T) {
	t.Parallel()
	program, _ := clientOf(t, server, server.Component(t, workloadsAccount))
	manager, _ := clientOf(t, server, server.Component(t, managerAccount))
	elsewhere := server.Namespace(t)
	config := server.ServiceAccount(t, elsewhere, managerAccount, nil)
	server.GrantAll(t, elsewhere, managerAccount)
	unlimited, _ := clientOf(t, server, config)
	const (
		label     = "metadata.labels: ClusterRole seamark-workloads-pods is given only by RoleBindings with the label"
		parameter = "metadata.labels: only RoleBindings of ClusterRole seamark-workloads-pods, and seamark-sidecarsets, can have the label"
		limited   = "seamark-manager can only write RoleBindings of ClusterRole seamark-workloads-pods with the same name"
		subjects  = "subjects: seamark-manager can only write RoleBindings with service account seamark-workloads of namespace"
	)
	shared := server.Namespace(t)
	eventually(t, "policy in effect", func(ctx context.Context) error {
		binding := env.WorkloadsBinding(shared)
		binding.Labels = nil
		return rejectedWith(label)(server.Client.Create(ctx, binding, client.DryRunAll))
	})
	update := func(ctx context.Context, c client.Client, before *rbacv1.RoleBinding, change bindingChange) error {
		after := before.DeepCopy()
		change(after)
		return c.Patch(ctx, after, client.MergeFrom(before))
	}
	remove := func(ctx context.Context, c client.Client, before *rbacv1.RoleBinding, _ bindingChange) error {
		return c.Delete(ctx, before)
	}
	ours := toAccount(elsewhere, workloadsAccount)
	for name, test := range map[string]struct {
		as        client.Client
		namespace string
		// stored is the RoleBinding before write; it is created if write is nil.
		stored []bindingChange
		write  func(context.Context, client.Client, *rbacv1.RoleBinding, bindingChange) error
		change bindingChange
		want   string
	}{
		"manager creates":                   {as: manager},
		"manager creates without subjects":  {as: manager, change: withoutUsers},
		"manager creates in kube-system":    {as: manager, namespace: "kube-system", want: limited},
		"manager creates in its namespace":  {as: manager, namespace: env.SystemNamespace, want: limited},
		"manager creates another role":      {as: manager, change: giveRole("edit"), want: limited},
		"any manager creates another role":  {as: unlimited, change: giveRole("edit"), want: limited},
		"manager creates another name":      {as: manager, change: func(b *rbacv1.RoleBinding) { b.Name = "other" }, want: limited},
		"manager creates without the label": {as: manager, change: unlabelled, want: label},
		"manager gives another account":     {as: manager, change: toAccount(env.SystemNamespace, managerAccount), want: subjects},
		"manager gives another namespace":   {as: manager, change: toAccount("default", workloadsAccount), want: subjects},
		"manager gives a user": {
			as: manager, change: func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, env.UserSubject("ann")) }, want: subjects,
		},
		"manager removes the label":        {as: manager, write: update, change: unlabelled, want: label},
		"manager removes the subjects":     {as: manager, write: update, change: withoutUsers},
		"manager deletes with subjects":    {as: manager, write: remove, want: subjects},
		"manager deletes without subjects": {as: manager, write: remove, stored: []bindingChange{withoutUsers}},
		"manager deletes another": {
			as: unlimited, write: remove, stored: []bindingChange{giveRole("view"), unlabelled, withoutUsers}, want: limited,
		},
		"manager changes another": {
			as: unlimited, write: update, stored: []bindingChange{giveRole("view"), unlabelled}, change: ours, want: limited,
		},
		"workloads creates":                     {as: program, want: `cannot create resource "rolebindings"`},
		"workloads removes the label":           {as: program, write: update, change: unlabelled, want: `cannot patch resource "rolebindings"`},
		"workloads deletes":                     {as: program, write: remove, want: `cannot delete resource "rolebindings"`},
		"administrator creates":                 {as: server.Client, change: func(b *rbacv1.RoleBinding) { b.Name = "by-hand" }},
		"administrator creates without a label": {as: server.Client, change: unlabelled, want: label},
		"administrator removes the label":       {as: server.Client, write: update, change: unlabelled, want: label},
		"administrator deletes":                 {as: server.Client, write: remove},
		"another role":                          {as: server.Client, change: func(b *rbacv1.RoleBinding) { b.Labels = nil; b.RoleRef.Name = "view" }},
		"another role with the label":           {as: server.Client, change: giveRole("view"), want: parameter},
		"another role gets the label": {
			as: server.Client, write: update, stored: []bindingChange{giveRole("view"), unlabelled},
			change: func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{grants.Label: grants.LabelValue} }, want: parameter,
		},
		"RoleBinding of the trials": {as: server.Client, change: func(b *rbacv1.RoleBinding) {
			b.Name, b.RoleRef.Kind, b.RoleRef.Name = "seamark-sidecarsets", "Role", "seamark-sidecarsets"
		}},
		"Role of the name": {as: server.Client, change: func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "Role" }, want: parameter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.namespace == "" {
				test.namespace = server.Namespace(t)
			}
			binding := env.WorkloadsBinding(test.namespace)
			for _, change := range test.stored {
				change(binding)
			}
			if test.write == nil {
				if test.change != nil {
					test.change(binding)
				}
				expect.Success(t, rejectedWith(test.want)(test.as.Create(t.Context(), binding, client.DryRunAll)))
				return
			}
			expect.NoError(t, server.Client.Create(t.Context(), binding))
			expect.Success(t, rejectedWith(test.want)(test.write(t.Context(), test.as, binding, test.change)))
		})
	}
	everywhere := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere", Labels: map[string]string{grants.Label: grants.LabelValue}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grants.Role},
	}
	expect.Success(t, rejectedWith(label)(server.Client.Create(t.Context(), everywhere)))
}

// TestPolicyOutlivesRights sends the headers of a write while a RoleBinding permits it, and the body when the RoleBinding has lost
// its subjects: the request was authorized, and the policy refuses it.
func TestPolicyOutlivesRights(t *testing.T) {
	t.Parallel()
	config := server.Component(t, workloadsAccount)
	namespace := granted(t)
	pod := podOf(namespace, replicaSet)
	expect.NoError(t, server.Client.Create(t.Context(), pod))
	program, _ := clientOf(t, server, config)
	const foreign = "the controller of a pod that seamark-workloads writes must be"
	label := patched("", `{"metadata": {"labels": {"a": "b"}}}`)
	eventually(t, "policy in effect", func(ctx context.Context) error { return rejectedWith(foreign)(label(ctx, program, pod.DeepCopy())) })
	send, answer := slowPatch(t, config, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", namespace, pod.Name))
	binding := env.WorkloadsBinding(namespace)
	expect.NoError(t, server.Client.Patch(t.Context(), binding, env.MergePatch(`{"subjects": null}`)))
	eventually(t, "rights gone", func(ctx context.Context) error {
		return rejectedWith(`cannot patch resource "pods"`)(label(ctx, program, pod.DeepCopy()))
	})
	send(`{"metadata": {"labels": {"a": "b"}}}`)
	expect.Success(t, rejectedWith(foreign)(<-answer))
}

// slowPatch begins a merge patch, and returns when the API server has authorized it and waits for the body.
func slowPatch(t *testing.T, config *rest.Config, path string) (send func(body string), answer <-chan error) {
	t.Helper()
	secure, err := rest.TLSConfigFor(config)
	expect.NoError(t, err)
	transport := &http.Transport{
		TLSClientConfig: secure, ExpectContinueTimeout: time.Minute, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	t.Cleanup(transport.CloseIdleConnections)
	reader, writer := io.Pipe()
	authorized, answers := make(chan struct{}), make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(authorized) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, strings.TrimSuffix(config.Host, "/")+path, reader)
	expect.NoError(t, err)
	request.Header = http.Header{
		"Authorization": {"Bearer " + config.BearerToken}, "Content-Type": {"application/merge-patch+json"}, "Expect": {"100-continue"},
	}
	go func() {
		response, err := transport.RoundTrip(request)
		if err == nil {
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = apierrors.NewGenericServerResponse(response.StatusCode, "patch", corev1.Resource("pods"), "", string(text), 0, true)
			}
		}
		answers <- err
	}()
	select {
	case <-authorized:
	case err := <-answers:
		t.Fatalf("the request ended: %v", err)
	}
	return func(body string) {
		_, err := io.WriteString(writer, body)
		expect.Success(t, err)
		_ = writer.Close()
	}, answers
}

// TestManagerGivesAndTakesRights runs what the manager does, with its rights and within its policy, from the first set of a namespace
// until after the last.
func TestManagerGivesAndTakesRights(t *testing.T) {
	t.Parallel()
	granter, err := grants.New(grants.Options{
		Config: server.Component(t, managerAccount), Namespace: env.SystemNamespace, Resources: []string{"clonesets", "sidecarsets"}, Log: logr.Discard(),
		Idle: time.Millisecond, Drained: time.Millisecond,
	})
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- granter.Start(ctx) }()
	t.Cleanup(func() { cancel(); expect.NoError(t, <-done) })
	namespaces := map[string]client.Object{}
	one, two := server.Namespace(t), server.Namespace(t)
	namespaces[one] = &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: "web"}, Spec: v1alpha1.CloneSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: podOf("").Spec},
	}}
	namespaces[two] = &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: two}, Spec: v1alpha1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Namespace: two,
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "agent", Image: "a"}}},
	}}
	for namespace, set := range namespaces {
		expect.NoError(t, server.Client.Create(t.Context(), set))
		binding := env.WorkloadsBinding(namespace)
		eventually(t, "rights for "+namespace, func(ctx context.Context) error {
			err := server.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding)
			if err == nil && !grants.Gives(binding, env.SystemNamespace) {
				err = fmt.Errorf("%+v", binding)
			}
			return err
		})
		expect.NoError(t, server.Client.Delete(t.Context(), set))
		eventually(t, "no RoleBinding in "+namespace, func(ctx context.Context) error {
			if err := server.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%+v, %w", binding.Subjects, err)
			}
			return nil
		})
	}
}

// TestWorkloadsWriteOnlyObjectsOfTheirSets checks revisions and claims.
func TestWorkloadsWriteOnlyObjectsOfTheirSets(t *testing.T) {
	t.Parallel()
	program, _ := clientOf(t, server, server.Component(t, workloadsAccount))
	server.GrantWorkloads(t, "kube-system")
	const (
		foreign  = "its controller must be one of these kinds of apps.kruise.io"
		replace  = "cannot replace the owners of"
		excluded = "in namespace \"kube-system\": these namespaces are excluded"
	)
	revision := func(namespace string, owners []metav1.OwnerReference) client.Object {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, GenerateName: "r-", OwnerReferences: owners, Finalizers: []string{"example.com/hook"},
			}, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")},
		}
	}
	claim := func(namespace string, owners []metav1.OwnerReference) client.Object {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "c-", OwnerReferences: owners, Finalizers: []string{"example.com/hook"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
	}
	type owners = []metav1.OwnerReference
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "web-0", UID: "p"}
	own := func(owners ...metav1.OwnerReference) func(client.Object) {
		return func(o client.Object) { o.SetOwnerReferences(owners) }
	}
	label := func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }
	create := func(client.Object) {}
	release := func(o client.Object) { o.SetFinalizers(nil) }
	shared := granted(t)
	eventually(t, "policy in effect", func(ctx context.Context) error {
		return rejectedWith(foreign)(program.Create(ctx, revision(shared, owners{replicaSet}), client.DryRunAll))
	})
	for name, test := range map[string]struct {
		object    func(namespace string, owners []metav1.OwnerReference) client.Object
		namespace string
		owners    owners
		// change is nil for a deletion.
		change func(client.Object)
		create bool
		want   string
	}{
		"create a revision":                   {object: revision, owners: owners{cloneSet}, change: create, create: true},
		"create a revision without an owner":  {object: revision, change: create, create: true, want: foreign},
		"create a revision of a built-in one": {object: revision, owners: owners{builtIn}, change: create, create: true, want: foreign},
		"create a revision of a SidecarSet": {
			object: revision, owners: owners{owner("apps.kruise.io/v1alpha1", "SidecarSet", "s")}, change: create, create: true, want: foreign,
		},
		"create a revision in kube-system": {
			object: revision, namespace: "kube-system", owners: owners{cloneSet}, change: create, create: true, want: excluded,
		},
		"change a revision":                   {object: revision, owners: owners{daemonSet}, change: label},
		"change a revision of a built-in one": {object: revision, owners: owners{builtInNode}, change: label, want: foreign},
		"adopt a revision":                    {object: revision, change: own(statefulSet)},
		"adopt a revision of a built-in one":  {object: revision, owners: owners{builtIn}, change: own(statefulSet), want: replace},
		"exchange the set of a revision":      {object: revision, owners: owners{cloneSet}, change: own(statefulSet), want: replace},
		"remove the finalizer of a revision":  {object: revision, owners: owners{cloneSet}, change: release, want: "metadata.finalizers"},
		"delete a revision":                   {object: revision, owners: owners{cloneSet}},
		"delete a revision of a built-in one": {object: revision, owners: owners{builtIn}, want: foreign},
		"create a claim":                      {object: claim, owners: owners{cloneSet}, change: create, create: true},
		"create a claim without an owner":     {object: claim, change: create, create: true},
		"create a claim of a built-in one":    {object: claim, owners: owners{builtIn}, change: create, create: true, want: foreign},
		"create a claim in kube-system": {
			object: claim, namespace: "kube-system", owners: owners{cloneSet}, change: create, create: true, want: excluded,
		},
		"change a claim of a built-in one":  {object: claim, owners: owners{builtIn}, change: label, want: foreign},
		"give a claim to its pod":           {object: claim, owners: owners{cloneSet}, change: own(pod)},
		"give a claim of a built-in one":    {object: claim, owners: owners{builtIn}, change: own(pod), want: foreign},
		"keep the other owner of a claim":   {object: claim, owners: owners{helper}, change: own(helper, statefulSet)},
		"remove the other owner of a claim": {object: claim, owners: owners{helper}, change: own(statefulSet), want: replace},
		"remove the finalizer of a claim":   {object: claim, owners: owners{cloneSet}, change: release, want: "metadata.finalizers"},
		"change a revision without a RoleBinding": {
			object: revision, namespace: server.Namespace(t), owners: owners{cloneSet}, change: label, want: `cannot patch resource "controllerrevisions"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.namespace == "" {
				test.namespace = granted(t)
			}
			object, as := test.object(test.namespace, test.owners), program
			if test.create {
				expect.Success(t, rejectedWith(test.want)(as.Create(t.Context(), object)))
				return
			}
			expect.NoError(t, server.Client.Create(t.Context(), object))
			if test.change == nil {
				expect.Success(t, rejectedWith(test.want)(as.Delete(t.Context(), object)))
				return
			}
			before := object.DeepCopyObject().(client.Object)
			test.change(object)
			expect.Success(t, rejectedWith(test.want)(as.Patch(t.Context(), object, client.MergeFrom(before))))
		})
	}
}
