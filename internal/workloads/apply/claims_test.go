// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
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
	x := apply.New(apply.Options{
		Client: fake, Live: fake, Parallel: 8, Budget: time.Minute, Timeout: 10 * time.Second, Now: time.Now,
		Failed: func(string) {},
		Wrote: func(string, string, string) {
			mu.Lock()
			defer mu.Unlock()
			wrote++
		},
	})
	outcome := x.Execute(t.Context(), testSet(), &planning.Actions{CreateClaims: []*corev1.PersistentVolumeClaim{claim("data-a"), claim("data-b")}})
	if !outcome.Succeeded() || outcome.Writes != 1 || wrote != 1 {
		t.Errorf("%d writes, of which %d are counted, want 1: %+v", outcome.Writes, wrote, outcome)
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
	outcome := x.Execute(t.Context(), testSet(), &planning.Actions{ExpandClaims: wanted, Creates: []*corev1.Pod{ownedPod("set-a", "1")}})
	if len(outcome.Failures) != 1 || !outcome.Failures[0].Update || outcome.Failures[0].Object != "persistentvolumeclaim fixed" ||
		outcome.Claims == "" || outcome.Writes != 2 {
		t.Errorf("outcome %+v, want a failed update of the claim, an expanded claim and a pod", outcome)
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
			outcome := x.Execute(t.Context(), testSet(), &planning.Actions{
				CreateClaims: []*corev1.PersistentVolumeClaim{wanted}, Creates: []*corev1.Pod{ownedPod("set-a", "7")},
			})
			if outcome.Outdated != test.outdated || (outcome.Writes == 0) != test.outdated || (outcome.Claims != "") != test.outdated {
				t.Errorf("outcome %+v, want outdated %t, and the pod otherwise", outcome, test.outdated)
			}
		})
	}
}

// The cache has generation 3 of the set, of which the planner decided to delete or adopt a pod.
func TestDeletesAndAdoptionsRequireTheSetOfTheDecision(t *testing.T) {
	cached := testSet()
	cached.Object.SetGeneration(3)
	now := metav1.Now()
	live := func(change func(*metav1.ObjectMeta)) []client.Object {
		set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid", Generation: 3}}
		change(&set.ObjectMeta)
		return []client.Object{set}
	}
	pod := ownedPod("set-a", "1")
	deletes := planning.Actions{Deletes: []planning.PodDelete{{Pod: pod}, {Pod: ownedPod("set-b", "2")}}, Creates: []*corev1.Pod{ownedPod("set-c", "3")}}
	adopts := planning.Actions{Patches: []planning.PodPatch{{Pod: pod, Controller: planning.Adopt}}}
	for name, test := range map[string]struct {
		live     []client.Object
		fails    error
		outdated bool
		errs     int
	}{
		"the same":      {live: live(func(*metav1.ObjectMeta) {})},
		"scaled out":    {live: live(func(m *metav1.ObjectMeta) { m.Generation = 4 }), outdated: true},
		"created again": {live: live(func(m *metav1.ObjectMeta) { m.UID = "other" }), outdated: true},
		"being deleted": {live: live(func(m *metav1.ObjectMeta) { m.DeletionTimestamp, m.Finalizers = &now, []string{"example.com/a"} }), outdated: true},
		"gone":          {outdated: true},
		"no answer":     {fails: context.DeadlineExceeded, errs: 1},
	} {
		for verb, actions := range map[string]planning.Actions{"delete": deletes, "adopt": adopts} {
			t.Run(name+", "+verb, func(t *testing.T) {
				writes, reads := atomic.Int32{}, atomic.Int32{}
				x := executor(t, interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
						reads.Add(1)
						if _, metadata := object.(*metav1.PartialObjectMetadata); !metadata || test.fails != nil {
							return test.fails
						}
						return c.Get(ctx, key, object, options...)
					},
					Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
						writes.Add(1)
						return nil
					},
					Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
						writes.Add(1)
						return nil
					},
				}, test.live...)
				outcome := x.Execute(t.Context(), cached, &actions)
				if outcome.Outdated != test.outdated || len(outcome.Errs) != test.errs || reads.Load() != 1 ||
					(writes.Load() > 0) != outcome.Succeeded() || (outcome.Pods != "") != (outcome.Succeeded() && verb == "delete") {
					t.Errorf("%d reads, %d writes, outcome %+v, want one read, outdated %t, %d errors, and writes only of the same set",
						reads.Load(), writes.Load(), outcome, test.outdated, test.errs)
				}
			})
		}
	}
}

// A claim that becomes that of a pod that does not exist would be deleted at once, also if a new pod of the
// same name uses it.
func TestClaimsBecomeThoseOfExistingPods(t *testing.T) {
	cached := testSet()
	cached.Object.SetGeneration(3)
	for name, test := range map[string]struct {
		uid        types.UID
		generation int64
		outdated   bool
	}{
		"the same":          {uid: "seen", generation: 3},
		"pod created again": {uid: "another", generation: 3, outdated: true},
		"pod gone":          {generation: 3, outdated: true},
		"set scaled out":    {uid: "seen", generation: 4, outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-set-a", UID: "claim"}}
			set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid", Generation: test.generation}}
			live := []client.Object{claim, set}
			if test.uid != "" {
				pod := ownedPod("set-a", "1")
				pod.UID = test.uid
				live = append(live, pod)
			}
			patched := false
			x := executor(t, interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					patched = true
					return nil
				},
			}, live...)
			changed := claim.DeepCopy()
			changed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "set-a", UID: "seen"}}
			outcome := x.Execute(t.Context(), cached, &planning.Actions{UpdateClaims: []*corev1.PersistentVolumeClaim{changed}})
			if outcome.Outdated != test.outdated || patched == test.outdated || len(outcome.Errs) > 0 {
				t.Errorf("outcome %+v, patched %t, want outdated %t", outcome, patched, test.outdated)
			}
		})
	}
}
