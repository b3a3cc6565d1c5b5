// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

// writes returns an action of each kind that writes an object of the namespace.
func writes(namespace string) map[string]planning.Actions {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "x", UID: "x"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta}
	revision := &appsv1.ControllerRevision{ObjectMeta: meta}
	pull := &v1alpha1.ImagePullJob{ObjectMeta: meta}
	return map[string]planning.Actions{
		"create a revision": {CreateRevision: revision},
		"update a revision": {UpdateRevisions: []*appsv1.ControllerRevision{revision}},
		"delete a revision": {DeleteRevisions: []*appsv1.ControllerRevision{revision}},
		"create a claim":    {CreateClaims: []*corev1.PersistentVolumeClaim{claim}},
		"update a claim":    {UpdateClaims: []*corev1.PersistentVolumeClaim{claim}},
		"expand a claim":    {ExpandClaims: []*corev1.PersistentVolumeClaim{claim}},
		"adopt a pod":       {Patches: []planning.PodPatch{{Pod: pod, Controller: planning.Adopt}}},
		"patch a pod": {Patches: []planning.PodPatch{{
			Pod: pod, Images: map[string]string{"c": "2"}, Conditions: []corev1.PodCondition{{Type: "A"}},
			Resources: map[string]corev1.ResourceRequirements{"c": {}},
		}}},
		"delete a pod":  {Deletes: []planning.PodDelete{{Pod: pod}}},
		"create a pod":  {Creates: []*corev1.Pod{pod}},
		"create a pull": {CreatePulls: []*v1alpha1.ImagePullJob{pull}},
		"delete a pull": {DeletePulls: []*v1alpha1.ImagePullJob{pull}},
	}
}

// TestNothingIsWrittenOutsideTheNamespaceOfTheSet lets planners decide about objects of other namespaces.
func TestNothingIsWrittenOutsideTheNamespaceOfTheSet(t *testing.T) {
	clusterSet := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "set-uid"}}
	sidecarSet := apply.Set{
		GroupVersionKind: v1alpha1.GroupVersion().WithKind("SidecarSet"), Object: clusterSet, Namespace: "system",
		Pods: func(namespace string) bool { return namespace == "ns" },
	}
	for name, test := range map[string]struct {
		set       apply.Set
		text      string
		namespace string
		// permitted are the actions that send a request.
		permitted []string
	}{
		"another namespace":          {set: testSet(), text: "CloneSet ns/set", namespace: "hostile"},
		"a pod that the set selects": {set: sidecarSet, text: "SidecarSet logs", namespace: "ns", permitted: []string{"adopt a pod", "patch a pod"}},
		"a pod that it does not":     {set: sidecarSet, text: "SidecarSet logs", namespace: "hostile"},
		"the namespace of the program": {set: sidecarSet, text: "SidecarSet logs", namespace: "system", permitted: []string{
			"create a revision", "update a revision", "delete a revision",
		}},
	} {
		for action, actions := range writes(test.namespace) {
			var requests []string
			request := func(verb string) error { requests = append(requests, verb); return fmt.Errorf("%s is recorded", verb) }
			e := executor(t, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return request("create")
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return request("delete")
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return request("patch")
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return request("patch")
				},
			}, testSet().Object, clusterSet)
			outcome := e.Execute(t.Context(), test.set, &actions)
			if slices.Contains(test.permitted, action) {
				if len(requests) == 0 {
					t.Errorf("%s: %s: no request; %+v", name, action, outcome)
				}
				continue
			}
			if len(requests) > 0 || len(outcome.Failures) != 1 || outcome.Writes > 0 {
				t.Errorf("%s: %s: requests %v, outcome %+v", name, action, requests, outcome)
				continue
			}
			kind := map[string]string{"revision": "controllerrevision", "claim": "persistentvolumeclaim", "pod": "pod", "pull": "imagepulljob"}[action[strings.LastIndexByte(action, ' ')+1:]]
			want := fmt.Sprintf("refuse to write %s %s/x for %s: it is not in the namespace of the set", kind, test.namespace, test.text)
			expect.Equal(t, fmt.Sprintf("%s: %s: error", name, action), want, outcome.Failures[0].Err.Error())
		}
	}
}
