// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestDeleteProtection deletes objects of all kinds of protection.
func TestDeleteProtection(t *testing.T) {
	t.Parallel()
	server.Apply(t, env.Manifests(t, []string{"config/policies/deletion.yaml"})...)
	namespace := server.Namespace(t)
	meta := func(protection string) metav1.ObjectMeta {
		object := metav1.ObjectMeta{Namespace: namespace, GenerateName: "protected-"}
		if protection != "" {
			object.Labels = map[string]string{"policy.kruise.io/delete-protection": protection}
		}
		return object
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
	cloneSet := func(protection string, replicas int32) client.Object {
		return &v1alpha1.CloneSet{ObjectMeta: meta(protection), Spec: v1alpha1.CloneSetSpec{Replicas: &replicas, Selector: selector, Template: pods}}
	}
	deployment := func(protection string, replicas int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta(protection), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: pods}}
	}
	service := func(protection string) client.Object {
		return &corev1.Service{ObjectMeta: meta(protection), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	const always, scale, noReplicas = "is Always: remove the label", "is Cascading and spec.replicas is 2: set it to 0, or remove the label", "which has the effect of Always"
	c := server.Client
	probe := cloneSet("Always", 0)
	create(t, c, probe)
	eventually(t, "the policy is in effect", func(ctx context.Context) error {
		return rejectedWith(always)(c.Delete(ctx, probe, client.DryRunAll))
	})
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"CloneSet, Always":                   {cloneSet("Always", 0), always},
		"CloneSet, Cascading with pods":      {cloneSet("Cascading", 2), scale},
		"CloneSet, Cascading, scaled to 0":   {cloneSet("Cascading", 0), ""},
		"CloneSet, another value":            {cloneSet("Never", 2), ""},
		"CloneSet without the label":         {cloneSet("", 2), ""},
		"Deployment, Cascading with pods":    {deployment("Cascading", 2), scale},
		"Deployment, Cascading, scaled to 0": {deployment("Cascading", 0), ""},
		"DaemonSet, Cascading":               {&v1alpha1.DaemonSet{ObjectMeta: meta("Cascading"), Spec: v1alpha1.DaemonSetSpec{Selector: selector, Template: pods}}, noReplicas},
		"Service, Always":                    {service("Always"), always},
		"Service, Cascading":                 {service("Cascading"), noReplicas},
		"Namespace, Cascading":               {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "protected-", Labels: meta("Cascading").Labels}}, noReplicas},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, c, test.object)
			expect.Success(t, rejectedWith(test.want)(c.Delete(t.Context(), test.object)))
		})
	}
	collected := cloneSet("Always", 0)
	create(t, c, collected)
	if wrong := rejectedWith(always)(c.DeleteAllOf(t.Context(), &v1alpha1.CloneSet{}, client.InNamespace(namespace))); wrong != nil {
		t.Errorf("deletion of a collection: %v", wrong)
	}
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	expect.NoError(t, c.Create(t.Context(), object))
	copied, is := object.DeepCopyObject().(client.Object)
	if !is {
		t.Fatalf("%T is no object", object)
	}
	t.Cleanup(func() {
		copied.SetLabels(nil)
		unprotected := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"policy.kruise.io/delete-protection": null}}}`))
		expect.Success(t, client.IgnoreNotFound(c.Patch(context.Background(), copied, unprotected)))
		expect.Success(t, client.IgnoreNotFound(c.Delete(context.Background(), copied)))
	})
}
