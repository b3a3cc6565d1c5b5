// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
	"github.com/seamark-dev/seamark/test/expect"
)

func created(out *Output) []string {
	var result []string
	for _, p := range out.Creates {
		result = append(result, p.Name)
	}
	return result
}

func TestStepIsBounded(t *testing.T) {
	out := newFixture(t, math.MaxInt32).plan(t)
	expect.Equal(t, "creates", planning.MostCreates, len(out.Creates))
}

func TestNewPodIsComplete(t *testing.T) {
	f := newFixture(t, 1, inPlace, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Annotations = map[string]string{"note": "x"}
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{
			LabelsHandler: map[string]string{match: "on"}, MarkPodNotReady: true,
		}}
	})
	f.new = f.plan(t).CreateRevision // The annotation is part of the template.
	pod := f.plan(t).Creates[0]
	id := InstanceID("set", 1)
	want := metav1.ObjectMeta{
		Namespace: "default", Name: "web-" + id,
		Labels: map[string]string{
			"app": "web", v1alpha1.CloneSetInstanceID: id, pub.LifecycleStateKey: "PreparingNormal",
			appsv1.ControllerRevisionHashLabelKey:  f.new.Name,
			appsv1.DefaultDeploymentUniqueLabelKey: revision.Hash(f.new.Name),
		},
		Annotations: map[string]string{
			"note": "x", v1alpha1.PodSerialAnnotationKey: "1",
			pub.LifecycleTimestampKey: now().Format(time.RFC3339),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, Kind())},
	}
	expect.Equal(t, "metadata", want, pod.ObjectMeta)
	gates := []corev1.PodReadinessGate{
		{ConditionType: pub.InPlaceUpdateReady}, {ConditionType: pub.KruisePodReadyConditionType},
	}
	expect.Equal(t, "readiness gates", gates, pod.Spec.ReadinessGates)
}

// TestNewPodBecomesNormal schedules a new pod: the write that gives it the condition of its readiness gate changes its state,
// unless the hook preNormal waits for a handler.
func TestNewPodBecomesNormal(t *testing.T) {
	for value, want := range map[string]string{"": "", "on": "Normal"} {
		f := newFixture(t, 1, preNormal, func(set *v1alpha1.CloneSet) { set.Spec.Template.Labels[match] = value })
		pod := f.plan(t).Creates[0]
		f.pods = append(f.pods, pod)
		expect.Equal(t, "state of a new pod", "PreparingNormal", pod.Labels[pub.LifecycleStateKey])
		if out := f.plan(t); len(out.Patches) > 0 {
			t.Errorf("a pod that is not scheduled is written: %+v", out.Patches)
		}
		pod.Spec.NodeName = "node-1"
		out := f.plan(t)
		if len(out.Patches) != 1 || len(out.Patches[0].Conditions) != 1 || ptr.Deref(out.Patches[0].Labels[pub.LifecycleStateKey], "") != want {
			t.Errorf("the handler is %q: patches %+v, want one with a condition and state %q", value, out.Patches, want)
		}
	}
}

// The type may change, and readiness gates cannot be added to a pod.
func TestPodsOfAllTypesHaveTheReadinessGate(t *testing.T) {
	for _, kind := range []func(*v1alpha1.CloneSet){func(*v1alpha1.CloneSet) {}, inPlace, inPlaceOnly, onDelete} {
		if pod := newFixture(t, 1, kind).plan(t).Creates[0]; !planning.HasGate(pod, pub.InPlaceUpdateReady) {
			t.Errorf("readiness gates %v, want %s", pod.Spec.ReadinessGates, pub.InPlaceUpdateReady)
		}
	}
}

func TestNames(t *testing.T) {
	id := func(n int64) string { return "web-" + InstanceID("set", n) }
	first, second := InstanceID("set", 1), InstanceID("set", 2)
	for name, test := range map[string]struct {
		replicas int32
		change   func(*v1alpha1.CloneSet)
		pods     string
		want     []string
		serial   int64
	}{
		"the first pods":                               {replicas: 2, want: []string{id(1), id(2)}},
		"after those of the status":                    {replicas: 1, change: func(set *v1alpha1.CloneSet) { set.Status.PodSerial = 7 }, want: []string{id(8)}, serial: 7},
		"after those of the pods":                      {replicas: 3, pods: "a serial=1, b serial=2 terminating, c serial=3", want: []string{id(4)}, serial: 3},
		"a create whose response was lost is repeated": {replicas: 2, pods: "a serial=2", want: []string{id(1)}},
		"taken by another pod":                         {replicas: 2, pods: first, want: []string{id(2)}},
		"a taken name counts as used":                  {replicas: 2, pods: "a serial=2 apps.kruise.io/cloneset-instance-id=" + first, want: []string{id(3)}, serial: 2},
		"named in podsToDelete":                        {replicas: 1, change: naming(first, second), want: []string{id(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas).pod(test.pods)
			if test.change != nil {
				test.change(f.set)
			}
			out := f.plan(t)
			expect.Equal(t, "names", test.want, created(&out))
			expect.Equal(t, "status.podSerial", test.serial, out.Status.PodSerial)
		})
	}
}

func TestNamesOfOtherPodsAreNotUsed(t *testing.T) {
	f := newFixture(t, 1)
	in := f.input()
	in.TakenNames = map[string]bool{"web-" + InstanceID("set", 1): true}
	out, err := Plan(f.set, in, false)
	if err != nil || out.Creates[0].Name != "web-"+InstanceID("set", 2) {
		t.Errorf("creates %v, %v, want the pod with serial 2", created(&out), err)
	}
}

func TestInstanceIDsDiffer(t *testing.T) {
	seen := make(map[string]int64)
	for n := range int64(100_000) {
		id := InstanceID("3f0c7a52-9f0e-4c1e-8a63-1d1b6b0c9a11", n)
		if other, ok := seen[id]; ok || len(id) != idLength || strings.Trim(id, alphabet) != "" {
			t.Fatalf("serials %d and %d have the ID %q", other, n, id)
		}
		seen[id] = n
	}
	if InstanceID("a", 1) == InstanceID("b", 1) {
		t.Error("two sets have the same first ID")
	}
}

// withClaims adds a claim template.
func withClaims(set *v1alpha1.CloneSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
}

// claim adds claims of the set: the instance ID and then words that change the claim, as pod does.
func (f *fixture) claim(descriptions string) *fixture {
	for description := range strings.SplitSeq(descriptions, ", ") {
		words := strings.Fields(description)
		if len(words) == 0 {
			continue
		}
		id := words[0]
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "data-web-" + id, ResourceVersion: "1",
			Labels:          map[string]string{"app": "web", v1alpha1.CloneSetInstanceID: id},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, Kind())},
		}}
		for _, word := range words[1:] {
			switch word {
			case "orphan":
				c.OwnerReferences = nil
			case "renamed":
				c.Name = "other"
			case "pod": // Its pod owns it.
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web-" + id, UID: types.UID("uid-" + id)}}
			case "terminating":
				at := ago(0)
				c.DeletionTimestamp = &at
			default:
				panic("unknown word " + word)
			}
		}
		f.claims = append(f.claims, c)
	}
	return f
}

// A pod whose claim is being deleted gets another one. No event reports when the claim has gone.
func TestEndOfClaimIsAwaited(t *testing.T) {
	f := newFixture(t, 1, withClaims).pod("a waits=a").claim("a terminating")
	if out := f.plan(t); len(out.CreateClaims) > 0 || out.RequeueAfter != step.ClaimRecheck {
		t.Errorf("creates %d claims, next step after %v, want none and %v", len(out.CreateClaims), out.RequeueAfter, step.ClaimRecheck)
	}
}

func TestClaims(t *testing.T) {
	noReuse := func(set *v1alpha1.CloneSet) { set.Spec.ScaleStrategy.DisablePVCReuse = true }
	first := InstanceID("set", 1)
	pod, claim := []string{"web-" + first}, []string{"data-web-" + first}
	toSet, toPod := []string{"CloneSet"}, []string{"Pod"}
	for name, test := range map[string]struct {
		replicas     int32
		change       func(*v1alpha1.CloneSet)
		pods, claims string
		// creates are the names of created pods, createsClaims those of created claims, and owners the kinds
		// of the owners of updated claims.
		creates, createsClaims, owners []string
	}{
		"created with the pod": {replicas: 1, creates: pod, createsClaims: claim},
		"reused":               {replicas: 2, pods: "used2", claims: "used1, used2", creates: []string{"web-used1"}},
		"of a pod that another process creates, before the pods with lower serial numbers": {
			replicas: 4, pods: first + " serial=1", claims: first + ", " + InstanceID("set", 3) + ", used1", creates: []string{
				"web-used1", "web-" + InstanceID("set", 3), "web-" + InstanceID("set", 4),
			}, createsClaims: []string{"data-web-" + InstanceID("set", 4)},
		},
		"not of a pod whose number comes later": {
			replicas: 3, pods: first + " serial=1", claims: first + ", " + InstanceID("set", 3), creates: []string{
				"web-" + InstanceID("set", 2), "web-" + InstanceID("set", 3),
			}, createsClaims: []string{"data-web-" + InstanceID("set", 2)},
		},
		"waits for the name of a pod that somebody else deletes":   {replicas: 2, pods: "a, b terminating", claims: "a, b"},
		"waits for the name of a pod that has ended":               {replicas: 2, pods: "a, b failed", claims: "a, b"},
		"adopted with their pod":                                   {replicas: 1, pods: "a", claims: "a orphan", owners: toSet},
		"not adopted without a pod":                                {replicas: 0, claims: "a orphan"},
		"not adopted with another name":                            {replicas: 1, pods: "a", claims: "a orphan renamed"},
		"without owner, deleted with the pod that the set deletes": {replicas: 0, pods: "a", claims: "a orphan", owners: toPod},
		"does not wait for a pod that the set has deleted": {
			replicas: 2, pods: "b, a terminating", claims: "b, a pod", creates: pod, createsClaims: claim,
		},
		"not reused while it is being deleted":        {replicas: 1, claims: "used1 terminating", creates: pod, createsClaims: claim},
		"not reused if a pod owns it":                 {replicas: 1, claims: "used1 pod", creates: pod, createsClaims: claim},
		"not reused if reuse is disabled":             {replicas: 1, change: noReuse, claims: "used1", creates: pod, createsClaims: claim},
		"deleted with the pod that the set deletes":   {replicas: 0, pods: "a", claims: "a", owners: toPod},
		"kept if the deletion is not wanted any more": {replicas: 1, pods: "a", claims: "a pod", owners: toSet},
		"deleted with the pod if reuse is disabled":   {replicas: 1, change: noReuse, pods: "a", claims: "a", owners: toPod},
		"created again for a pod that waits for it": {
			replicas: 3, pods: "a waits=a, b waits=b, c", claims: "b", createsClaims: []string{"data-web-a"},
		},
		"not created again for a pod without it, nor for one that leaves": {replicas: 2, pods: "a waits=other, b waits=b named, c"},
		"nothing to do": {replicas: 1, pods: "a", claims: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas, withClaims).pod(test.pods).claim(test.claims)
			if test.change != nil {
				test.change(f.set)
			}
			out := f.plan(t)
			var claims, owners []string
			for _, c := range out.CreateClaims {
				claims = append(claims, c.Name)
			}
			for _, c := range out.UpdateClaims {
				for _, owner := range c.OwnerReferences {
					owners = append(owners, owner.Kind)
				}
			}
			want := [][]string{test.creates, test.createsClaims, test.owners}
			expect.Equal(t, "pods, claims and owners of claims", want, [][]string{created(&out), claims, owners})
		})
	}
}

// TestPodsOfOldRevisionsKeepRemovedClaims scales out a set whose partition keeps one pod at the old revision, after the only
// template of a claim was removed.
func TestPodsOfOldRevisionsKeepRemovedClaims(t *testing.T) {
	f := newFixture(t, 2, withClaims, partition(1))
	expect.NoError(t, revision.RecordClaims(f.old, f.set.Spec.VolumeClaimTemplates))
	f.set.Spec.VolumeClaimTemplates = nil
	out := f.wantSteps(t, "+new", "+old")
	for _, pod := range out.Creates {
		isOld := revision.Is(pod, f.old.Name)
		if mounts := len(pod.Spec.Volumes) == 1; mounts != isOld {
			t.Errorf("pod %s of the old revision: %t has the volumes %v", pod.Name, isOld, pod.Spec.Volumes)
		} else if isOld && (len(out.CreateClaims) != 1 || out.CreateClaims[0].Name != "data-"+pod.Name) {
			t.Errorf("creates %v, want the claim of pod %s", out.CreateClaims, pod.Name)
		}
	}
}
