// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// claiming returns a pod of a revision that uses a claim with its name.
func claiming(name, rev string) *corev1.Pod {
	pod := ownedPod(name, "1")
	pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: rev}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	return pod
}

// TestRefusedWritesBlockOnlyWhatDependsOnThem executes a step of which the API server refuses the creation of one object.
func TestRefusedWritesBlockOnlyWhatDependsOnThem(t *testing.T) {
	hash := "new"
	serves, updates, leaves := claiming("set-serves", "old"), claiming("set-updates", "old"), claiming("set-leaves", "old")
	prepares, ends := claiming("set-prepares", "old"), claiming("set-ends", "old")
	ends.DeletionTimestamp, ends.Finalizers = new(metav1.Now()), []string{"example.com/hook"}
	preparingUpdate, preparingDelete := string(pub.LifecycleStatePreparingUpdate), string(pub.LifecycleStatePreparingDelete)
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	actions := planning.Actions{
		CreateRevision: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set-new"}},
		CreateClaims:   []*corev1.PersistentVolumeClaim{claim("set-a"), claim("set-b")},
		Patches: []planning.PodPatch{
			{Pod: serves, Reason: "Ready", Conditions: []corev1.PodCondition{{Type: "Ready", Status: corev1.ConditionTrue}}},
			{Pod: updates, Reason: "Update", Labels: map[string]*string{appsv1.ControllerRevisionHashLabelKey: &hash}},
			{Pod: prepares, Reason: "Prepare", Labels: map[string]*string{pub.LifecycleStateKey: &preparingUpdate}},
			{Pod: ends, Reason: "Prepare", Labels: map[string]*string{pub.LifecycleStateKey: &preparingDelete}},
		},
		Deletes: []planning.PodDelete{{Pod: leaves}},
		Creates: []*corev1.Pod{claiming("set-a", "set-new"), claiming("set-b", "set-new"), claiming("set-c", "set-old")},
	}
	for refused, want := range map[string][]string{
		"nothing": {"set-a", "set-b", "set-c", "set-ends", "set-leaves", "set-prepares", "set-serves", "set-updates"},
		"set-a":   {"set-b", "set-c", "set-ends", "set-leaves", "set-prepares", "set-serves", "set-updates"},
		"set-b":   {"set-a", "set-c", "set-ends", "set-leaves", "set-prepares", "set-serves", "set-updates"},
		"set-new": {"set-c", "set-ends", "set-serves"},
	} {
		t.Run(refused, func(t *testing.T) {
			set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
			x := executor(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if _, isPod := object.(*corev1.Pod); !isPod && object.GetName() == refused {
						return apierrors.NewForbidden(corev1.Resource("objects"), refused, errors.New("exceeded quota"))
					}
					return c.Create(ctx, object, options...)
				},
			}, serves.DeepCopy(), updates.DeepCopy(), leaves.DeepCopy(), prepares.DeepCopy(), ends.DeepCopy(), set)
			outcome := x.Execute(t.Context(), testSet(), &actions)
			slices.Sort(outcome.Written)
			if !slices.Equal(outcome.Written, want) {
				t.Errorf("the step wrote to pods %v, want %v: %+v", outcome.Written, want, outcome)
			}
			if fails := refused != "nothing"; (len(outcome.Failures) == 1) != fails {
				t.Errorf("failures %+v, want one: %t", outcome.Failures, fails)
			}
		})
	}
}

// TestQuotaOfClaimsCostsFewRequests executes a step that creates many claims and pods, of which a quota refuses all claims.
func TestQuotaOfClaimsCostsFewRequests(t *testing.T) {
	var actions planning.Actions
	for i := range 200 {
		name := fmt.Sprintf("set-%d", i)
		actions.CreateClaims = append(actions.CreateClaims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
		actions.Creates = append(actions.Creates, claiming(name, "set-old"))
	}
	var requests, pods atomic.Int32
	x := executor(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, isPod := object.(*corev1.Pod); isPod {
				pods.Add(1)
				return c.Create(ctx, object, options...)
			}
			requests.Add(1)
			return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), object.GetName(), errors.New("exceeded quota"))
		},
	}, &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}})
	outcome := x.Execute(t.Context(), testSet(), &actions)
	if n := int(requests.Load()); n < 10 || n > 20 || pods.Load() > 0 || len(outcome.Failures) != n {
		t.Errorf("%d requests for claims, %d pods, %d failures, want few requests and no pods", n, pods.Load(), len(outcome.Failures))
	}
}
