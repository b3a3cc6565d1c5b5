// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

// A resize that can never succeed is recorded in the pod, so that it is recreated. One that may
// succeed later is a failure.
func TestRefusedResize(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		recorded bool
	}{
		"invalid":                  {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "set-a", nil), true},
		"no subresource":           {apierrors.NewNotFound(podResource, "set-a"), true},
		"quota":                    {apierrors.NewForbidden(podResource, "set-a", nil), false},
		"the API server is loaded": {apierrors.NewTooManyRequests("wait", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := ownedPod("set-a", "7")
			pod.UID = types.UID("uid-a")
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "a:1"}}
			var x *apply.Executor
			var live client.Client
			x = executor(t, interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, c client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					live = c
					return test.err
				},
			}, pod)
			outcome := x.Execute(t.Context(), testSet(), &planning.Actions{Patches: []planning.PodPatch{{
				Pod: stored(pod),
				Resources: map[string]corev1.ResourceRequirements{
					"main": {Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}},
				},
			}}})
			got := &corev1.Pod{}
			expect.NoError(t, live.Get(t.Context(), client.ObjectKeyFromObject(pod), got))
			why := got.Annotations[pub.ResizeRefusedKey]
			if test.recorded != (why == test.err.Error()) || outcome.Succeeded() != test.recorded || (len(outcome.Written) == 1) != test.recorded {
				t.Errorf("annotation %q, outcome %+v", why, outcome)
			}
		})
	}
}

// stored returns the pod with the resource version of a new object in the fake API server.
func stored(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = "999"
	return pod
}
