// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

func serial(n int64) func(*corev1.Pod) {
	return annotated(v1alpha1.PodSerialAnnotationKey, strconv.FormatInt(n, 10))
}

func created(out *Output) []string {
	var result []string
	for _, p := range out.Creates {
		result = append(result, p.Name)
	}
	return result
}

func TestStepIsBounded(t *testing.T) {
	out := newFixture(t, math.MaxInt32).plan(t)
	if len(out.Creates) != workload.MostCreates {
		t.Errorf("%d creates, want %d", len(out.Creates), workload.MostCreates)
	}
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
			"app": "web", v1alpha1.CloneSetInstanceID: id, pub.LifecycleStateKey: "Normal",
			appsv1.ControllerRevisionHashLabelKey:  f.new.Name,
			appsv1.DefaultDeploymentUniqueLabelKey: revision.Hash(f.new.Name),
		},
		Annotations: map[string]string{
			"note": "x", v1alpha1.PodSerialAnnotationKey: "1",
			pub.LifecycleTimestampKey: now().Format(time.RFC3339),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, Kind())},
	}
	if diff := cmp.Diff(want, pod.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	gates := []corev1.PodReadinessGate{
		{ConditionType: pub.InPlaceUpdateReady}, {ConditionType: pub.KruisePodReadyConditionType},
	}
	if diff := cmp.Diff(gates, pod.Spec.ReadinessGates); diff != "" {
		t.Errorf("readiness gates (-want +got):\n%s", diff)
	}
}

func TestNewPodWaitsForTheHandlerOfPreNormal(t *testing.T) {
	for value, want := range map[string]string{"": "PreparingNormal", "on": "Normal"} {
		pod := newFixture(t, 1, preNormal, func(set *v1alpha1.CloneSet) { set.Spec.Template.Labels[match] = value }).plan(t).Creates[0]
		if got := pod.Labels[pub.LifecycleStateKey]; got != want {
			t.Errorf("a new pod whose handler is %q is in state %s, want %s", value, got, want)
		}
	}
}

func TestRecreatedPodsNeedNoReadinessGate(t *testing.T) {
	if pod := newFixture(t, 1).plan(t).Creates[0]; len(pod.Spec.ReadinessGates) != 0 {
		t.Errorf("readiness gates %v, want none: each needs one more write per pod", pod.Spec.ReadinessGates)
	}
}

func TestNames(t *testing.T) {
	id := func(n int64) string { return "web-" + InstanceID("set", n) }
	for name, test := range map[string]struct {
		replicas int32
		change   func(*fixture)
		want     []string
		serial   int64
	}{
		"the first pods": {replicas: 2, want: []string{id(1), id(2)}},
		"after those of the status": {
			replicas: 1, change: func(f *fixture) { f.set.Status.PodSerial = 7 }, want: []string{id(8)}, serial: 7,
		},
		"after those of the pods": {
			replicas: 3, change: func(f *fixture) { f.pod("a", serial(1)).pod("b", serial(2), terminating).pod("c", serial(3)) },
			want: []string{id(4)}, serial: 3,
		},
		"a create whose response was lost is repeated": {
			replicas: 2, change: func(f *fixture) { f.pod("a", serial(2)) }, want: []string{id(1)}, serial: 0,
		},
		"taken by another pod": {
			replicas: 2, change: func(f *fixture) { f.pod(InstanceID("set", 1)) }, want: []string{id(2)},
		},
		"a taken name counts as used": {
			replicas: 2, change: func(f *fixture) {
				f.pod("a", serial(2)).pods[0].Labels[v1alpha1.CloneSetInstanceID] = InstanceID("set", 1)
			}, want: []string{id(3)}, serial: 2,
		},
		"named in podsToDelete": {
			replicas: 1, change: func(f *fixture) { naming(InstanceID("set", 1), InstanceID("set", 2))(f.set) },
			want: []string{id(3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas)
			if test.change != nil {
				test.change(f)
			}
			out := f.plan(t)
			if diff := cmp.Diff(test.want, created(&out)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if out.Status.PodSerial != test.serial {
				t.Errorf("status.podSerial %d, want %d", out.Status.PodSerial, test.serial)
			}
		})
	}
}

func TestNamesOfOtherPodsAreNotUsed(t *testing.T) {
	in := newFixture(t, 1).input()
	in.TakenNames = map[string]bool{"web-" + InstanceID("set", 1): true}
	out, err := Plan(in)
	if err != nil || out.Creates[0].Name != "web-"+InstanceID("set", 2) {
		t.Errorf("creates %v, %v, want the pod with serial 2", created(&out), err)
	}
}

func TestInstanceIDsDiffer(t *testing.T) {
	seen := make(map[string]int64)
	for n := range int64(100_000) {
		id := InstanceID("3f0c7a52-9f0e-4c1e-8a63-1d1b6b0c9a11", n)
		if other, ok := seen[id]; ok || len(id) != idLength {
			t.Fatalf("serials %d and %d have the ID %q", other, n, id)
		}
		seen[id] = n
	}
}

// withClaims adds a claim template.
func withClaims(set *v1alpha1.CloneSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
}

// claim adds a claim of the set with the instance ID, and changes it.
func (f *fixture) claim(id string, change ...func(*corev1.PersistentVolumeClaim)) *fixture {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "data-web-" + id, ResourceVersion: "1",
		Labels:          map[string]string{"app": "web", v1alpha1.CloneSetInstanceID: id},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.set, Kind())},
	}}
	for _, f := range change {
		f(c)
	}
	f.claims = append(f.claims, c)
	return f
}

func ownedByPod(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web-" + name, UID: types.UID("uid-" + name)}}
	}
}

// pending lets a pod wait for the claim of the instance ID.
func pending(id string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		p.Spec.NodeName, p.Spec.Volumes = "", []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-" + id},
		}}}
	}
}

// A pod whose claim is being deleted gets another one. No event reports when the claim has gone.
func TestEndOfClaimIsAwaited(t *testing.T) {
	f := newFixture(t, 1, withClaims).pod("a", pending("a"))
	f.claim("a", func(c *corev1.PersistentVolumeClaim) { at := ago(0); c.DeletionTimestamp = &at })
	if out := f.plan(t); len(out.CreateClaims) > 0 || out.RequeueAfter != claimRecheck {
		t.Errorf("creates %d claims, next step after %v, want none and %v", len(out.CreateClaims), out.RequeueAfter, claimRecheck)
	}
}

func TestClaims(t *testing.T) {
	noReuse := func(set *v1alpha1.CloneSet) { withClaims(set); set.Spec.ScaleStrategy.DisablePVCReuse = true }
	for name, test := range map[string]struct {
		replicas int32
		change   func(*v1alpha1.CloneSet)
		setup    func(*fixture)
		// pods are the names of created pods, claims those of created claims, and owners the kinds of
		// the owners of updated claims.
		pods, claims, owners []string
	}{
		"created with the pod": {
			replicas: 1, change: withClaims, pods: []string{"web-" + InstanceID("set", 1)},
			claims: []string{"data-web-" + InstanceID("set", 1)},
		},
		"reused": {
			replicas: 2, change: withClaims, setup: func(f *fixture) { f.claim("used1").claim("used2").pod("used2") },
			pods: []string{"web-used1"},
		},
		"waits for the name of a pod that somebody else deletes": {
			replicas: 2, change: withClaims, setup: func(f *fixture) { f.pod("a").claim("a").pod("b", terminating).claim("b") },
		},
		"waits for the name of a pod that has ended": {
			replicas: 2, change: withClaims, setup: func(f *fixture) {
				f.pod("a").claim("a").pod("b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }).claim("b")
			},
		},
		"adopted with their pod": {
			replicas: 1, change: withClaims, setup: func(f *fixture) {
				f.pod("a").claim("a", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })
			},
			owners: []string{"CloneSet"},
		},
		"not adopted without a pod": {
			replicas: 0, change: withClaims, setup: func(f *fixture) {
				f.claim("a", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })
			},
		},
		"not adopted with another name": {
			replicas: 1, change: withClaims, setup: func(f *fixture) {
				f.pod("a").claim("a", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences, c.Name = nil, "other" })
			},
		},
		"without owner, deleted with the pod that the set deletes": {
			replicas: 0, change: withClaims, setup: func(f *fixture) {
				f.pod("a").claim("a", func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil })
			},
			owners: []string{"Pod"},
		},
		"does not wait for a pod that the set has deleted": {
			replicas: 2, change: withClaims, setup: func(f *fixture) {
				f.pod("b").claim("b").pod("a", terminating).claim("a", ownedByPod("a"))
			},
			pods: []string{"web-" + InstanceID("set", 1)}, claims: []string{"data-web-" + InstanceID("set", 1)},
		},
		"not reused while it is being deleted": {
			replicas: 1, change: withClaims, setup: func(f *fixture) {
				f.claim("used1", func(c *corev1.PersistentVolumeClaim) { at := ago(0); c.DeletionTimestamp = &at })
			},
			pods: []string{"web-" + InstanceID("set", 1)}, claims: []string{"data-web-" + InstanceID("set", 1)},
		},
		"not reused if a pod owns it": {
			replicas: 1, change: withClaims, setup: func(f *fixture) { f.claim("used1", ownedByPod("used1")) },
			pods: []string{"web-" + InstanceID("set", 1)}, claims: []string{"data-web-" + InstanceID("set", 1)},
		},
		"not reused if reuse is disabled": {
			replicas: 1, change: noReuse, setup: func(f *fixture) { f.claim("used1") },
			pods: []string{"web-" + InstanceID("set", 1)}, claims: []string{"data-web-" + InstanceID("set", 1)},
		},
		"deleted with the pod that the set deletes": {
			replicas: 0, change: withClaims, setup: func(f *fixture) { f.pod("a").claim("a") }, owners: []string{"Pod"},
		},
		"kept if the deletion is not wanted any more": {
			replicas: 1, change: withClaims, setup: func(f *fixture) { f.pod("a").claim("a", ownedByPod("a")) },
			owners: []string{"CloneSet"},
		},
		"deleted with the pod if reuse is disabled": {
			replicas: 1, change: noReuse, setup: func(f *fixture) { f.pod("a").claim("a") }, owners: []string{"Pod"},
		},
		"created again for a pod that waits for it": {
			replicas: 3, change: withClaims, setup: func(f *fixture) {
				f.pod("a", pending("a")).pod("b", pending("b")).claim("b").pod("c")
			},
			claims: []string{"data-web-a"},
		},
		"not created again for a pod without it, nor for one that leaves": {
			replicas: 2, change: withClaims, setup: func(f *fixture) {
				f.pod("a", pending("other")).pod("b", pending("b"), specified).pod("c")
			},
		},
		"nothing to do": {
			replicas: 1, change: withClaims, setup: func(f *fixture) { f.pod("a").claim("a") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas, test.change)
			if test.setup != nil {
				test.setup(f)
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
			for what, pair := range map[string][2][]string{
				"pods": {test.pods, created(&out)}, "claims": {test.claims, claims}, "owners": {test.owners, owners},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%s %v, want %v", what, pair[1], pair[0])
				}
			}
		})
	}
}

func TestClaimIsMountedInsteadOfTheVolumeOfTheTemplate(t *testing.T) {
	f := newFixture(t, 1, withClaims, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "tmp"}}
	})
	volumes := f.plan(t).Creates[0].Spec.Volumes
	if len(volumes) != 2 || volumes[0].PersistentVolumeClaim == nil ||
		volumes[0].PersistentVolumeClaim.ClaimName != "data-web-"+InstanceID("set", 1) {
		t.Errorf("volumes %+v, want the claim and tmp", volumes)
	}
}
