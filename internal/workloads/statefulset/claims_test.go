// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// following lets claims of 1Gi follow a template of 2Gi.
func following(set *appsv1beta1.StatefulSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claimOf("data", "2Gi", "")}
	set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// claimOf returns a bound claim of the class "fast" with the requested size and that of its volume.
func claimOf(name, size, capacity string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	if capacity != "" {
		claim.Status = corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)},
		}
	}
	return claim
}

// claims adds the claims of the pods 0, 1 and so on: the size and words that change the claim.
func (f *fixture) claims(t *testing.T, descriptions ...string) *fixture {
	t.Helper()
	for i, description := range descriptions {
		words := strings.Fields(description)
		claim := claimOf(fmt.Sprintf("data-db-%d", i), words[0], words[0])
		for _, word := range words[1:] {
			switch word {
			case "expanding":
				claim.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
			case "mounting":
				claim.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("1Gi")
				claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
					Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
				}}
			case "slow":
				claim.Spec.StorageClassName = new("slow")
			case "shared":
				claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			case "unbound":
				claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			case "terminating":
				claim.DeletionTimestamp = new(metav1.NewTime(now()))
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
		f.in.Claims = append(f.in.Claims, claim)
	}
	return f
}

func TestClaimsAreExpandedBeforePodsAreUpdated(t *testing.T) {
	type (
		claims = []string
		pods   = []string
		writes = []string
	)
	old, updated := pods{"0", "1", "2"}, pods{"0 updated", "1 updated", "2 updated"}
	two := maxUnavailable(intstr.FromInt32(2))
	for name, test := range map[string]struct {
		set    func(*appsv1beta1.StatefulSet)
		pods   pods
		claims claims
		want   writes
		reason string
	}{
		"OnDelete":                        {func(set *appsv1beta1.StatefulSet) { set.Spec.VolumeClaimUpdateStrategy.Type = "OnDelete" }, old, claims{"1Gi", "1Gi", "1Gi"}, writes{"delete db-2: Update"}, ""},
		"the first pod":                   {nil, old, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-2 to 2Gi"}, ""},
		"the first pods":                  {two, old, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-2 to 2Gi", "expand data-db-1 to 2Gi"}, ""},
		"waits for the volume":            {nil, old, claims{"1Gi", "1Gi", "2Gi expanding"}, nil, ""},
		"continues with the next":         {two, old, claims{"1Gi", "1Gi", "2Gi expanding"}, writes{"expand data-db-1 to 2Gi"}, ""},
		"updates the pod":                 {nil, old, claims{"1Gi", "1Gi", "2Gi"}, writes{"delete db-2: Update"}, ""},
		"restart resizes the file system": {nil, old, claims{"1Gi", "1Gi", "2Gi mounting"}, writes{"delete db-2: Update"}, ""},
		"updates in place":                {inPlace(appsv1beta1.InPlaceOnlyPodUpdateStrategyType), old, claims{"1Gi", "1Gi", "2Gi"}, writes{"Updating db-2"}, ""},
		"prepares the deletion after it":  {preDelete, pods{"0", "1", "2 hook=true"}, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-2 to 2Gi"}, ""},
		"pods that are updated":           {nil, updated, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-2 to 2Gi"}, ""},
		"the next updated pod":            {nil, updated, claims{"1Gi", "1Gi", "2Gi"}, writes{"expand data-db-1 to 2Gi"}, ""},
		"an updated pod waits":            {nil, updated, claims{"1Gi", "1Gi", "2Gi expanding"}, nil, ""},
		"an updated pod is not restarted": {nil, updated, claims{"1Gi", "1Gi", "2Gi mounting"}, writes{"expand data-db-1 to 2Gi"}, ""},
		"all claims fit":                  {nil, updated, claims{"2Gi", "2Gi", "2Gi"}, nil, ""},
		"a larger claim":                  {nil, updated, claims{"3Gi", "2Gi", "2Gi"}, nil, ""},
		"an unavailable pod blocks":       {nil, pods{"0 unready", "1", "2"}, claims{"1Gi", "1Gi", "1Gi"}, nil, ""},
		"partition":                       {partition(2), updated, claims{"1Gi", "1Gi", "2Gi"}, nil, ""},
		"paused":                          {func(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }, old, claims{"1Gi", "1Gi", "1Gi"}, nil, ""},
		"pods are updated OnDelete":       {onDelete, old, claims{"1Gi", "1Gi", "1Gi"}, nil, ""},
		"without rollingUpdate":           {notDefaulted, old, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-2 to 2Gi"}, ""},
		"by priority":                     {byRole, pods{"0 role=secondary", "1 role=primary", "2 role=primary"}, claims{"1Gi", "1Gi", "1Gi"}, writes{"expand data-db-0 to 2Gi"}, ""},
		"ordered, a broken pod":           {ordered, pods{"0 broken"}, claims{"1Gi"}, writes{"expand data-db-0 to 2Gi"}, ""},
		"another class":                   {two, old, claims{"1Gi", "1Gi", "1Gi slow"}, nil, "ClaimIncompatible"},
		"another class, updated":          {nil, updated, claims{"1Gi", "1Gi", "2Gi slow"}, nil, "ClaimIncompatible"},
		"other access modes":              {nil, old, claims{"1Gi", "1Gi", "2Gi shared"}, nil, "ClaimIncompatible"},
		"another class, being deleted":    {nil, old, claims{"1Gi", "1Gi", "1Gi slow terminating"}, writes{"delete db-2: Update"}, ""},
		"an unbound claim":                {nil, pods{"0", "1", "2 pending"}, claims{"1Gi", "1Gi", "1Gi unbound"}, writes{"delete db-2: Update"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			change := following
			if test.set != nil {
				change = both(following, test.set)
			}
			f := build(t, change).pods(t, test.pods...).claims(t, test.claims...)
			out := f.plan(t)
			var got writes
			for _, claim := range out.ExpandClaims {
				got = append(got, "expand "+claim.Name+" to "+claim.Spec.Resources.Requests.Storage().String())
			}
			if diff := cmp.Diff(test.want, append(got, f.summary(&out)...)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			reason := ""
			for _, c := range out.Status.Conditions {
				if c.Type == appsv1beta1.FailedUpdatePod && c.Status == corev1.ConditionTrue {
					reason = c.Reason
				}
			}
			if reason != test.reason {
				t.Errorf("FailedUpdatePod has the reason %q, want %q", reason, test.reason)
			}
		})
	}
}

// TestUpdateThatHasBegunContinues changes the size of the claims while a pod is updated.
func TestUpdateThatHasBegunContinues(t *testing.T) {
	f := build(t, both(following, inPlace(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))).
		pods(t, "0", "1", "2 updated "+pub.LifecycleStateKey+"=Updating").claims(t, "1Gi", "1Gi", "1Gi")
	out := f.plan(t)
	if diff := cmp.Diff([]string{"Normal db-2"}, f.summary(&out)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if len(out.ExpandClaims) > 0 {
		t.Errorf("expands %d claims, want none before the pod is available", len(out.ExpandClaims))
	}
}

func TestIncompatibleClaimIsNamed(t *testing.T) {
	f := build(t, following).pods(t, "0", "1", "2").claims(t, "1Gi", "1Gi", "1Gi slow")
	want := `Claim data-db-2 of pod db-2 cannot follow its template: spec.storageClassName is "slow" in the claim and "fast" ` +
		`in the template. Delete the claim and the pod to create them again, or restore the template.`
	out := f.plan(t)
	if got := out.Status.Conditions[0].Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	// The condition becomes False when the template is restored.
	f.set.Status = out.Status
	f.set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil
	if c := f.plan(t).Status.Conditions[0]; c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v, want False", c)
	}
}

func TestClaimCounts(t *testing.T) {
	f := build(t, both(following, replicas(6))).
		pods(t, "0", "1", "2 terminating", "3", "4", "6").
		claims(t, "1Gi", "2Gi expanding", "3Gi", "2Gi slow", "2Gi terminating", "2Gi", "2Gi")
	f.set.Spec.VolumeClaimTemplates = append(f.set.Spec.VolumeClaimTemplates, *claimOf("logs", "1Gi", ""))
	want := []appsv1beta1.VolumeClaimStatus{
		{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 2}, {VolumeClaimName: "logs"},
	}
	if diff := cmp.Diff(want, f.plan(t).Status.VolumeClaims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	f.set.Spec.VolumeClaimTemplates = nil
	out, err := statefulset.Plan(f.set, f.in)
	if err != nil || out.Status.VolumeClaims != nil {
		t.Errorf("claims %v, error %v, want none", out.Status.VolumeClaims, err)
	}
}

// TestPodsOfOldRevisionsKeepRemovedClaims recreates a pod that the partition keeps at the old revision, after the template of
// one of its claims was removed, and a pod of the update revision.
func TestPodsOfOldRevisionsKeepRemovedClaims(t *testing.T) {
	f := build(t, partition(2))
	f.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claimOf("data", "1Gi", ""), *claimOf("logs", "1Gi", "")}
	f.set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	f.v1 = f.record(t)
	f.set.Spec.VolumeClaimTemplates = f.set.Spec.VolumeClaimTemplates[1:]
	f.set.Spec.Template.Spec.Containers[0] = corev1.Container{Name: "db", Image: "db:3"}
	f.v2 = f.record(t)
	f.set.Status.CurrentRevision, f.set.Status.UpdateRevision = f.v1, f.v2
	f.pods(t, "0")
	f.in.Claims = []*corev1.PersistentVolumeClaim{claimOf("logs-db-1", "1Gi", "")}
	out := f.plan(t)
	got := map[string][]string{}
	for _, pod := range out.Creates {
		for _, volume := range pod.Spec.Volumes {
			got[pod.Name] = append(got[pod.Name], volume.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, claim := range out.CreateClaims {
		got["created"] = append(got["created"], claim.Name)
	}
	want := map[string][]string{"db-1": {"logs-db-1", "data-db-1"}, "db-2": {"logs-db-2"}, "created": {"data-db-1", "logs-db-2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
