// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// TestStepsSeeNothingOfOtherNamespaces gathers for a set whose UID objects of another namespace and of another kind name.
func TestStepsSeeNothingOfOtherNamespaces(t *testing.T) {
	kind := v1alpha1.GroupVersion().WithKind("CloneSet")
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	meta := func(namespace, apiVersion string) metav1.ObjectMeta {
		reference := *metav1.NewControllerRef(set, kind)
		reference.APIVersion = apiVersion
		return metav1.ObjectMeta{Namespace: namespace, Name: "web-a", OwnerReferences: []metav1.OwnerReference{reference}}
	}
	all := []metav1.ObjectMeta{meta("ns", "apps.kruise.io/v1alpha1"), meta("hostile", "apps.kruise.io/v9"), meta("hostile", "apps.kruise.io/v1alpha1")}
	other := meta("ns", "example.com/v1")
	other.Name = "other"
	all = append(all, other)
	var pods []*corev1.Pod
	var claims []*corev1.PersistentVolumeClaim
	var revisions []*appsv1.ControllerRevision
	var pulls []*v1alpha1.ImagePullJob
	for _, each := range all {
		pods = append(pods, &corev1.Pod{ObjectMeta: each})
		claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: each})
		revisions = append(revisions, &appsv1.ControllerRevision{ObjectMeta: each})
		pulls = append(pulls, &v1alpha1.ImagePullJob{ObjectMeta: each})
	}
	b := newBase(Options{Stores: Stores{
		Pods: fakeapi.NewStore(t, ControllerIndexers(), pods), Claims: fakeapi.NewStore(t, ClaimIndexers(), claims),
		Revisions: fakeapi.NewStore(t, RevisionIndexers(), revisions), Pulls: fakeapi.NewStore(t, ControllerIndexers(), pulls),
	}})
	b.kind = kind
	b.parts = func(client.Object) planning.Parts {
		return planning.Parts{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: &corev1.PodTemplateSpec{},
			Claims: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		}
	}
	in, err := b.gather(set)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := in.Pods, pods[:1]; !slices.Equal(got, want) {
		t.Errorf("pods %v", got)
	}
	if got, want := in.Claims, claims[:1]; !slices.Equal(got, want) {
		t.Errorf("claims %v", got)
	}
	if got, want := in.Revisions, revisions[:1]; !slices.Equal(got, want) {
		t.Errorf("revisions %v", got)
	}
	if got, want := in.Pulls, pulls[:1]; !slices.Equal(got, want) {
		t.Errorf("pulls %v", got)
	}
}

// TestGatherFindsClaimsOfRemovedTemplates has a claim without owner whose template only a revision has recorded.
func TestGatherFindsClaimsOfRemovedTemplates(t *testing.T) {
	set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "set"}}
	b := newBase(Options{})
	b.kind = appsv1beta1.GroupVersion().WithKind("StatefulSet")
	rev := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "db-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, b.kind)},
	}}
	if err := revision.RecordClaims(rev, []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}); err != nil {
		t.Fatal(err)
	}
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	claims := []*corev1.PersistentVolumeClaim{claim("data-db-1"), claim("logs-db-1")}
	b.Stores = Stores{
		Pods: fakeapi.NewStore[*corev1.Pod](t, ControllerIndexers(), nil), Claims: fakeapi.NewStore(t, ClaimIndexers(), claims),
		Revisions: fakeapi.NewStore(t, RevisionIndexers(), []*appsv1.ControllerRevision{rev}),
	}
	b.parts = func(client.Object) planning.Parts {
		return planning.Parts{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Template: &corev1.PodTemplateSpec{}}
	}
	in, err := b.gather(set)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Claims, claims[:1]) {
		t.Errorf("claims %v, want the recorded one", in.Claims)
	}
}
