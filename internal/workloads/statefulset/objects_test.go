// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

func withClaims(whenDeleted, whenScaled appsv1beta1.PersistentVolumeClaimRetentionPolicyType) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"own": "label"}},
		}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled,
		}
	}
}

func TestNewPodIsComplete(t *testing.T) {
	f := build(t, both(replicas(1), withClaims("Delete", "Retain"), inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType)))
	f.set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "other"}}
	f.set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{MarkPodNotReady: true}}
	out := f.plan(t)
	name := out.Status.UpdateRevision
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "db-0", GenerateName: "db-",
			Labels: map[string]string{
				"app": "db", "controller-revision-hash": name, "statefulset.kubernetes.io/pod-name": "db-0",
				"apps.kubernetes.io/pod-index": "0", "lifecycle.apps.kruise.io/state": "Normal",
			},
			Annotations: map[string]string{"lifecycle.apps.kruise.io/timestamp": "2026-01-01T12:00:00Z"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "db", UID: "set",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			Hostname: "db-0", Subdomain: "service",
			Containers: []corev1.Container{{Name: "db", Image: "db:2"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-0"},
			}}, {Name: "other"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}, {ConditionType: "KruisePodReady"}},
		},
	}
	if diff := cmp.Diff([]*corev1.Pod{want}, out.Creates); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	wantClaim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "data-db-0", Labels: map[string]string{"own": "label", "app": "db"},
		OwnerReferences: want.OwnerReferences,
	}}
	if diff := cmp.Diff([]*corev1.PersistentVolumeClaim{wantClaim}, out.CreateClaims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	// Only updates in place need their readiness gate, which costs a write to the status of the pod.
	inPlace(appsv1beta1.RecreatePodUpdateStrategyType)(f.set)
	want.Spec.ReadinessGates = want.Spec.ReadinessGates[1:]
	if diff := cmp.Diff(want.Spec.ReadinessGates, f.plan(t).Creates[0].Spec.ReadinessGates); diff != "" {
		t.Errorf("readiness gates with ReCreate (-want +got):\n%s", diff)
	}
}

func TestClaimRetention(t *testing.T) {
	const keep, del = appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	set := metav1.OwnerReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "db", UID: "set",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	pod := metav1.OwnerReference{
		APIVersion: "v1", Kind: "Pod", Name: "db-0", UID: "db-0", Controller: new(true), BlockOwnerDeletion: new(true),
	}
	earlier, other := pod, metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "x", UID: "x", Controller: new(true)}
	earlier.UID = "earlier"
	weak, older := set, set
	weak.Controller, older.APIVersion = nil, "apps.kruise.io/v1alpha1"
	type refs = []metav1.OwnerReference
	for name, test := range map[string]struct {
		whenDeleted, whenScaled appsv1beta1.PersistentVolumeClaimRetentionPolicyType
		excess                  bool
		have, want              refs
	}{
		"retain":                              {keep, keep, false, nil, nil},
		"retain: references are removed":      {keep, keep, false, refs{set}, refs{}},
		"deleted with the set":                {del, keep, false, nil, refs{set}},
		"deleted with the set, excess":        {del, keep, true, nil, refs{set}},
		"deleted when scaled, replica":        {keep, del, false, refs{pod}, refs{}},
		"deleted when scaled, excess":         {keep, del, true, nil, refs{pod}},
		"always deleted, replica":             {del, del, false, refs{pod}, refs{set}},
		"always deleted, excess":              {del, del, true, refs{set}, refs{pod}},
		"a reference that does not control":   {del, keep, false, refs{weak}, refs{set}},
		"a reference in another version":      {del, keep, false, refs{older}, nil},
		"another version, retain":             {keep, keep, false, refs{older}, refs{}},
		"another controller":                  {del, keep, false, refs{other}, nil},
		"another controller besides ours":     {del, keep, false, refs{other, set}, refs{other}},
		"an earlier pod of the name":          {keep, del, true, refs{earlier}, nil},
		"references of others are kept":       {keep, del, true, refs{{Name: "x", UID: "y"}}, refs{{Name: "x", UID: "y"}, pod}},
		"nothing to change with both deleted": {del, del, false, refs{set}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := int32(1)
			if test.excess {
				n = 0
			}
			f := build(t, both(withClaims(test.whenDeleted, test.whenScaled), replicas(n))).pods(t, "0 updated")
			f.in.Claims = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{
				Name: "data-db-0", OwnerReferences: test.have,
			}}}
			out := f.plan(t)
			if test.want == nil {
				if len(out.UpdateClaims) > 0 {
					t.Errorf("updates %v, want no update", out.UpdateClaims[0].OwnerReferences)
				}
				return
			}
			if len(out.UpdateClaims) != 1 {
				t.Fatalf("%d updates, want 1", len(out.UpdateClaims))
			}
			if diff := cmp.Diff(test.want, out.UpdateClaims[0].OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodWaitsForClaimOfEarlierPod(t *testing.T) {
	for name, claim := range map[string]corev1.PersistentVolumeClaim{
		"being deleted":     {ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", DeletionTimestamp: new(metav1.NewTime(now()))}},
		"of an earlier pod": {ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "db-0", UID: "x"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, both(replicas(1), withClaims("Retain", "Delete")))
			f.in.Claims = []*corev1.PersistentVolumeClaim{&claim}
			if out := f.plan(t); !out.Empty() {
				t.Errorf("writes %+v, want none", out.Actions)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	f := build(t, minReady(30)).pods(t, "0", "1 updated fresh", "2 updated")
	out := f.plan(t)
	want := appsv1beta1.StatefulSetStatus{
		ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 2, CurrentReplicas: 1,
		UpdatedReplicas: 2, UpdatedReadyReplicas: 2, UpdatedAvailableReplicas: 1,
		CurrentRevision: f.v1, UpdateRevision: f.v2, CollisionCount: new(int32(0)), LabelSelector: "app=db",
	}
	if diff := cmp.Diff(want, out.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestStatusAfterUpdate(t *testing.T) {
	out := build(t, nil).pods(t, "0 updated", "1 updated", "2 updated").plan(t)
	if out.Status.CurrentRevision != out.Status.UpdateRevision || out.Status.CurrentReplicas != 3 || !out.Empty() {
		t.Errorf("status %+v with writes %+v, want a completed update", out.Status, out.Actions)
	}
}

func TestCurrentRevision(t *testing.T) {
	for name, test := range map[string]struct {
		set     func(*appsv1beta1.StatefulSet)
		pods    []string
		updated bool
	}{
		"updated with OnDelete":                        {set: onDelete, pods: []string{"0 updated", "1 updated", "2 updated"}, updated: true},
		"a pod is not available":                       {set: minReady(30), pods: []string{"0 updated", "1 updated fresh", "2 updated"}},
		"a replica that keeps the revision is missing": {set: both(byRole, partition(1)), pods: []string{"1 updated", "2 updated"}},
		"scaled to zero":                               {set: replicas(0), updated: true},
		"scaled to zero during the canary":             {set: both(replicas(0), partition(1))},
		"scaled to zero with OnDelete and a partition": {set: both(both(replicas(0), partition(1)), func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = "OnDelete"
		}), updated: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := build(t, test.set).pods(t, test.pods...)
			if status := f.plan(t).Status; (status.CurrentRevision == f.v2) != test.updated {
				t.Errorf("current revision %s, want the update revision: %t", status.CurrentRevision, test.updated)
			}
		})
	}
}

// TestPodsInHooksAreNotAvailable counts a ready pod in each state.
func TestPodsInHooksAreNotAvailable(t *testing.T) {
	for _, state := range []pub.LifecycleStateType{
		pub.LifecycleStatePreparingNormal, pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating, pub.LifecycleStateUpdated,
		pub.LifecycleStatePreparingDelete,
	} {
		f := build(t, nil).pods(t, "0", "1", "2")
		f.in.Pods[1].Labels[pub.LifecycleStateKey] = string(state)
		if status := f.plan(t).Status; status.ReadyReplicas != 3 || status.AvailableReplicas != 2 {
			t.Errorf("%s: %d ready, %d available, want 3 and 2", state, status.ReadyReplicas, status.AvailableReplicas)
		}
	}
}

func TestSettled(t *testing.T) {
	for pods, want := range map[string]bool{
		"0 updated,1 updated,2 updated":           true,
		"0 updated,1 updated":                     false,
		"0 updated,1 updated,2 updated unready":   false,
		"0 updated,1 updated,2 updated fresh":     false,
		"0 updated,1 updated,2 updated,3 updated": false,
		"0,1 updated,2 updated":                   false,
	} {
		t.Run(pods, func(t *testing.T) {
			f := build(t, minReady(30)).pods(t, strings.Split(pods, ",")...)
			out := f.plan(t)
			if kind := statefulset.Set(); kind.Converged(f.set, &out) != want {
				t.Errorf("converged %t, want %t with the status %+v", !want, want, out.Status)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	f := build(t, inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType)).pods(t, "0", "1", "2")
	f.set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
	f.in.Markers.Labels = sets.New("app", "role")
	status := f.plan(t).Status
	var got []string
	for _, c := range status.Conditions {
		got = append(got, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	want := []string{
		"FailedUpdatePod=True InPlaceUpdateImpossible: Pod db-2 cannot be updated in place: spec.containers[db].env changes.",
		"SelectorMarked=True MarkerWritesSelectorKey: PodProbeMarkers write labels of the selector: app. " +
			"The set releases and replaces a pod when such a label changes.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	f.set.Status = status
	f.set.Spec.Template.Spec.Containers[0].Env = nil
	f.in.Markers.Labels = nil
	for _, c := range f.plan(t).Status.Conditions {
		if c.Status != corev1.ConditionFalse {
			t.Errorf("condition %s is %s after the cause is gone, want False", c.Type, c.Status)
		}
	}
}

// TestOverdueDeletionNamesPodAndNode checks replicas and excess pods of both policies.
func TestOverdueDeletionNamesPodAndNode(t *testing.T) {
	for name, policy := range map[string]func(*appsv1beta1.StatefulSet){"Parallel": nil, "OrderedReady": ordered} {
		t.Run(name, func(t *testing.T) {
			f := build(t, policy).pods(t, "0 updated", "1 terminating", "2 updated", "4 terminating")
			f.in.Pods[1].Spec.NodeName = "lost"
			for _, i := range []int{1, 3} {
				f.in.Pods[i].DeletionTimestamp = new(metav1.NewTime(now().Add(-planning.OverdueBound)))
			}
			out := f.plan(t)
			const want = "wait for their names or claims: db-1 on node lost, db-4. If their node is lost,"
			if c := out.Status.Conditions; len(c) != 1 || c[0].Type != planning.DeletionOverdue || !strings.Contains(c[0].Message, want) {
				t.Errorf("conditions %+v, want %s with %q", c, planning.DeletionOverdue, want)
			}
		})
	}
}

func TestEndedPodIsReported(t *testing.T) {
	f := build(t, ordered).pods(t, "0 failed", "1", "2")
	var got []string
	out := f.plan(t)
	for i := range out.Events {
		got = append(got, out.Events[i].Type+" "+out.Events[i].Message())
	}
	want := []string{"Warning Pod db-0 has ended: Failed. It is deleted.", "Normal Deleted pod db-0: Finished."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReversedRangeIsReported(t *testing.T) {
	f := build(t, reserve(intstr.FromString("3-5"), intstr.FromString("5-3")))
	_, err := statefulset.Plan(f.set, f.in)
	want := `spec.reserveOrdinals[1]: Invalid value: "5-3": must be a number or a range whose end is not below its start`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestOrdinalsEnd reserves the highest ordinals.
func TestOrdinalsEnd(t *testing.T) {
	const highest = math.MaxInt32
	f := build(t, reserve(intstr.FromInt32(highest-1)))
	f.set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: highest - 2}
	if diff := cmp.Diff([]int{highest - 2, highest}, statefulset.Ordinals(f.set)); diff != "" {
		t.Errorf("ordinals (-want +got):\n%s", diff)
	}
	f.set.Status = f.plan(t).Status
	want := "spec.reserveOrdinals leaves 2 of 3 replicas an ordinal between spec.ordinals.start and 2147483647."
	if got := f.set.Status.Conditions; len(got) != 1 || got[0].Reason != "NoFreeOrdinals" || got[0].Message != want {
		t.Errorf("conditions %+v, want one with the message %q", got, want)
	}
	f.set.Spec.ReserveOrdinals = nil
	if got := f.plan(t).Status.Conditions; len(got) != 1 || got[0].Status != corev1.ConditionFalse {
		t.Errorf("conditions %+v without reserved ordinals, want False", got)
	}
}

func TestStepIsBounded(t *testing.T) {
	out := build(t, replicas(math.MaxInt32)).plan(t)
	if len(out.Creates) != planning.MostCreates {
		t.Errorf("%d creates, want %d", len(out.Creates), planning.MostCreates)
	}
}

// BenchmarkPlan plans a step of a set at rest. Pods keep the annotation of their last update in place.
func BenchmarkPlan(b *testing.B) {
	for name, annotations := range map[string]map[string]string{
		"created": nil,
		"updated in place": {pub.InPlaceUpdateStateKey: `{"revision":"db-1","updateTimestamp":"2026-01-01T11:00:00Z",` +
			`"lastContainerStatuses":{"db":{"imageID":"sha256:a","containerID":"containerd://1","image":"db:1"}}}`},
	} {
		b.Run(name, func(b *testing.B) {
			f := build(&testing.T{}, replicas(3000))
			for i := range 3000 {
				f.pods(&testing.T{}, fmt.Sprintf("%d updated", i))
				f.in.Pods[i].Annotations = annotations
			}
			for b.Loop() {
				if _, err := statefulset.Plan(f.set, f.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
