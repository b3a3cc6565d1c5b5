// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestExistingClaimIsNotAWrite(t *testing.T) {
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	fake := fakeapi.Client(t, claim("data-a")).Build()
	var mu sync.Mutex
	wrote := 0
	x := apply.NewWorkload(apply.WorkloadOptions{
		Client: fake, Live: fake, Parallel: 8, Budget: time.Minute, Timeout: 10 * time.Second, Now: time.Now,
		Wrote: func(string, string, string) {
			mu.Lock()
			defer mu.Unlock()
			wrote++
		},
	})
	step := x.Execute(t.Context(), testSet(), &workload.Actions{CreateClaims: []*corev1.PersistentVolumeClaim{claim("data-a"), claim("data-b")}})
	if !step.Succeeded() || step.Writes != 1 || wrote != 1 {
		t.Errorf("%d writes, of which %d are counted, want 1: %+v", step.Writes, wrote, step)
	}
}

// TestRefusedExpansionDoesNotBlock expands two claims, one of which the API server refuses.
func TestRefusedExpansionDoesNotBlock(t *testing.T) {
	claim := func(name, size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v", Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			}},
		}
	}
	fixed, fast := claim("fixed", "1Gi"), claim("fast", "1Gi")
	x := executor(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == fixed.Name {
				return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), fixed.Name, errors.New("the storageclass must support resize"))
			}
			if body, err := patch.Data(object); err != nil || !strings.Contains(string(body), `"spec":{"resources":{"requests":{"storage":"2Gi"}}}`) {
				t.Errorf("patch %s, error %v, want only the size in the specification", body, err)
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}, fixed, fast)
	wanted := []*corev1.PersistentVolumeClaim{claim("fixed", "2Gi"), claim("fast", "2Gi")}
	step := x.Execute(t.Context(), testSet(), &workload.Actions{ExpandClaims: wanted, Creates: []*corev1.Pod{ownedPod("set-a", "1")}})
	if len(step.Failures) != 1 || !step.Failures[0].Update || step.Failures[0].Object != "persistentvolumeclaim fixed" ||
		step.Claims == "" || step.Writes != 2 {
		t.Errorf("step %+v, want a failed update of the claim, an expanded claim and a pod", step)
	}
}

// The pods of a step that creates claims do not start with the data of earlier pods with the same names.
func TestExistingClaimThatLeaves(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		meta     metav1.ObjectMeta
		outdated bool
	}{
		"of the set": {meta: metav1.ObjectMeta{OwnerReferences: ownedPod("set-a", "7").OwnerReferences}},
		"of a pod": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: "set-a", UID: "earlier"},
		}}, true},
		"terminating": {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"kubernetes.io/pvc-protection"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: test.meta}
			claim.Namespace, claim.Name = "ns", "data-set-a"
			x := executor(t, interceptor.Funcs{}, claim)
			wanted := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-set-a"}}
			step := x.Execute(t.Context(), testSet(), &workload.Actions{
				CreateClaims: []*corev1.PersistentVolumeClaim{wanted}, Creates: []*corev1.Pod{ownedPod("set-a", "7")},
			})
			if step.Outdated != test.outdated || (step.Writes == 0) != test.outdated || (step.Claims != "") != test.outdated {
				t.Errorf("step %+v, want outdated %t, and the pod otherwise", step, test.outdated)
			}
		})
	}
}
