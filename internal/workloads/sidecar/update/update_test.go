// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRollout updates pods while the nodes are as slow as a random number says.
func TestRollout(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 25))
		w := newWorld(t, 10)
		w.accept(func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.InitContainers[0].Image = "agent:2", "proxy:2"
			s.UpdateStrategy.Partition = new(intstr.FromString("25%")) // 3 of 10
			s.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
		})
		for range 100 {
			w.now = w.now.Add(time.Second)
			out := w.plan()
			w.apply(out)
			disturbed, updated := 0, 0
			for _, pod := range w.pods {
				if !planning.Ready(pod) {
					disturbed++
				}
				if strings.Contains(images(pod), "agent:2") {
					updated++
				}
			}
			if disturbed > 2 || updated > 7 {
				t.Fatalf("seed %d: %d pods are unavailable, %d updated", seed, disturbed, updated)
			}
			for _, pod := range w.pods {
				if !planning.Ready(pod) && random.IntN(3) == 0 {
					w.run(pod)
				}
			}
		}
		out := w.plan()
		if out.Matched != 10 || out.Updated != 7 || out.Ready != 10 || out.UpdatedReady != 7 || !out.Empty() || out.NotUpgradable != 0 {
			t.Fatalf("seed %d: %+v", seed, out)
		}
		for _, pod := range w.pods {
			if got := images(pod); got != "proxy:2 setup:1 agent:2 server:1" && got != "proxy:1 setup:1 agent:1 server:1" {
				t.Fatalf("seed %d: images %s", seed, got)
			}
			got := inject.Of(pod, "logs")
			if updated := strings.Contains(images(pod), "agent:2"); updated != (got.Revision == w.latest().Name) || updated != (got.Hash == w.latest().Hash) {
				t.Fatalf("seed %d: updated %t, revision %+v", seed, updated, got)
			}
		}
	}
}

// TestPodOfAnotherNamespace has a pod that says that it has the set, and that its update makes it unavailable, in a
// namespace that the set does not select.
func TestPodOfAnotherNamespace(t *testing.T) {
	w := newWorld(t, 2)
	forged := w.pods[0].DeepCopy()
	forged.Namespace, forged.UID = foreign, "forged"
	forged.Annotations[v1alpha1.SidecarSetInPlaceStateKey] = `{"logs":{"revision":"x","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":{"agent":{"imageID":"x"}}}}`
	forged.Status.ContainerStatuses = nil
	w.setReady(forged, corev1.ConditionFalse)
	w.pods = append(w.pods, forged)
	w.accept(func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" })
	for range 3 {
		w.now = w.now.Add(time.Second)
		w.apply(w.plan())
		for _, pod := range w.pods[:2] {
			w.run(pod)
		}
	}
	if out := w.plan(); out.Matched != 2 || out.UpdatedReady != 2 || out.NotUpgradable != 0 {
		t.Errorf("%+v, want 2 pods, all updated", out)
	}
}

// TestGuardedPods has a pod that a guard protects from updates, one that it protects from deletion, and a partition.
func TestGuardedPods(t *testing.T) {
	w := newWorld(t, 3)
	w.pods[0].Labels[builders.GuardLabel], w.pods[1].Labels[builders.GuardLabel] = "update", "delete"
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image, s.UpdateStrategy.MaxUnavailable = "agent:2", new(intstr.FromInt32(3))
	})
	out := w.plan()
	expect.Equal(t, "message", "PodDisruptionBudget strict guards games/game-00", out.Guarded.Message())
	w.apply(out)
	for i, want := range []string{"agent:1", "agent:2", "agent:2"} {
		if got := images(w.pods[i]); !strings.Contains(got, want) {
			t.Errorf("images of pod %d: %s, want %s", i, got, want)
		}
	}
	w.set.Spec.UpdateStrategy.Partition = new(intstr.FromInt32(1))
	expect.Equal(t, "message when the partition is reached", "", w.plan().Guarded.Message())
}

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.SidecarSetSpec)
		// prepare changes the pod.
		prepare func(*corev1.Pod)
		// patches are the images and the resources of the first patch, why is why there is none.
		images, why string
		// updated is whether the pod counts as updated before.
		updated bool
	}{
		"image":             {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" }, images: "map[agent:agent:2]"},
		"native sidecar":    {change: func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[0].Image = "proxy:2" }, images: "map[proxy:proxy:2]"},
		"init container":    {change: func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[1].Args = []string{"x"} }, images: "map[]"},
		"unmounted volume":  {change: func(s *v1alpha1.SidecarSetSpec) { s.Volumes = []corev1.Volume{{Name: "v"}} }, updated: true},
		"variable":          {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }, why: "games/game-00: spec.containers[agent].env changes"},
		"another container": {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Name = "other" }, why: "games/game-00: container other is not at the same place"},
		"one more": {
			change: func(s *v1alpha1.SidecarSetSpec) {
				s.Containers = append(s.Containers, v1alpha1.SidecarContainer{Container: corev1.Container{Name: "zz"}})
			},
			why: "games/game-00: the number of containers changes",
		},
		"sharing": {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].ShareVolumePolicy.Type = "enabled" }, why: "games/game-00: what container agent gets of the pod's containers changes"},
		"paused":  {change: func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image, s.UpdateStrategy.Paused = "agent:2", true }},
		"no update": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Type = "agent:2", v1alpha1.NotUpdateSidecarSetStrategyType
		}},
		"not selected": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image = "agent:2"
			s.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}
		}},
		"selected": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image = "agent:2"
			s.UpdateStrategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
		}, images: "map[agent:agent:2]"},
		"all keep the old one": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Partition = "agent:2", new(intstr.FromString("100%"))
		}},
		"99 percent keep it": {change: func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image, s.UpdateStrategy.Partition = "agent:2", new(intstr.FromString("99%"))
		}, images: "map[agent:agent:2]"},
		"a revision that is gone": {
			change:  func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" },
			prepare: func(p *corev1.Pod) { rename(p) }, images: "map[agent:agent:2]",
		},
		"a revision that is gone, other variables": {
			change: func(s *v1alpha1.SidecarSetSpec) {
				s.Containers[0].Image, s.Containers[0].Env = "agent:2", []corev1.EnvVar{{Name: "A"}}
			},
			prepare: func(p *corev1.Pod) { rename(p) }, why: `games/game-00: its revision "logs-gone" does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			if test.prepare != nil {
				test.prepare(w.pods[0])
			}
			w.accept(test.change)
			out := w.plan()
			if out.Why != test.why || (out.NotUpgradable == 1) != (test.why != "") || (out.Updated == 1) != test.updated {
				t.Errorf("%d pods not upgradable: %s; want %s", out.NotUpgradable, out.Why, test.why)
			}
			if got := len(out.Patches); (got == 1) != (test.images+test.why != "") {
				t.Fatalf("%d patches", got)
			}
			if test.why != "" {
				test.images = "map[]" // Only the condition.
			}
			if test.images != "" && fmt.Sprint(out.Patches[0].Images) != test.images {
				t.Errorf("images %v, want %s", out.Patches[0].Images, test.images)
			}
		})
	}
}

// rename makes the pod one of a revision that does not exist.
func rename(pod *corev1.Pod) {
	name := inject.Of(pod, "logs").Revision
	for _, key := range []string{v1alpha1.SidecarSetHashKey, v1alpha1.SidecarSetHashWithoutImageKey} {
		pod.Annotations[key] = strings.ReplaceAll(pod.Annotations[key], name, "logs-gone")
	}
}

// TestResources checks that resources follow the other changes, and what a refusal means.
func TestResources(t *testing.T) {
	w := newWorld(t, 1)
	limits := func(cpu string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	}
	pod := w.pods[0]
	w.accept(func(s *v1alpha1.SidecarSetSpec) { s.InitContainers[0].Resources = limits("1") })
	if out := w.plan(); out.NotUpgradable != 1 || !strings.Contains(out.Why, "QoS class changes from BestEffort to Burstable") {
		t.Errorf("%+v", out)
	}
	pod.Spec.Containers[1].Resources = limits("2")
	out := w.plan()
	if len(out.Patches) != 1 || !out.Patches[0].Resources["proxy"].Limits["cpu"].Equal(resource.MustParse("1")) {
		t.Fatalf("%+v", out)
	}
	// The program ends between the two writes of the patch.
	delete(out.Patches[0].Resources, "proxy")
	w.apply(out)
	out = w.plan()
	if out.Updated != 1 || out.UpdatedReady != 0 || len(out.Patches) != 1 || out.Patches[0].Reason != "Resize" {
		t.Fatalf("%+v", out)
	}
	pod.Annotations[pub.ResizeRefusedKey] = "no room"
	if out = w.plan(); len(out.Patches) != 1 || out.Patches[0].Reason != "Upgradable" || out.NotUpgradable != 1 ||
		out.Why != "games/game-00: the API server refuses the resize: no room" {
		t.Errorf("%+v", out)
	}
}

// TestAnnotationsOfAnUpdate checks that an update sets what it overwrites or merges, and nothing that it retains.
func TestAnnotationsOfAnUpdate(t *testing.T) {
	w := newWorld(t, 1)
	w.pods[0].Annotations["merged"], w.pods[0].Annotations["text"] = `{"a":1}`, "no JSON"
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.PatchPodMetadata = []v1alpha1.SidecarSetPatchPodMetadata{
			{PatchPolicy: "Retain", Annotations: map[string]string{"retained": "1"}},
			{PatchPolicy: "Overwrite", Annotations: map[string]string{"overwritten": "2"}},
			{PatchPolicy: "MergePatchJson", Annotations: map[string]string{"merged": `{"b":2}`, "text": "{}"}},
		}
	})
	out := w.plan()
	w.apply(out)
	got := w.pods[0].Annotations
	if _, retained := got["retained"]; retained || got["overwritten"] != "2" || got["merged"] != `{"a":1,"b":2}` || got["text"] != "no JSON" {
		t.Errorf("annotations %v", got)
	}
	var events []string
	for i := range out.Events {
		events = append(events, out.Events[i].Reason+": "+out.Events[i].Message())
	}
	expect.Equal(t, "events", []string{
		"AnnotationKept: Annotation text of pod games/game-00 stays as it is: it is no JSON object.",
		"SuccessfulUpdatePodInPlace: Started to update pod games/game-00 in place to revision " + w.set.Status.InForce.Revision + ".",
	}, events)
}

// TestOrderOfAnUpdate checks that pods that are not ready come first, and that the pods of one owner are apart.
func TestOrderOfAnUpdate(t *testing.T) {
	w := newWorld(t, 6)
	for i, pod := range w.pods {
		owner := fmt.Sprint("set-", i/3)
		pod.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Name: owner, Controller: new(true)}}
	}
	w.setReady(w.pods[5], corev1.ConditionFalse)
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.UpdateStrategy.MaxUnavailable = new(intstr.FromString("100%"))
	})
	var order []string
	for _, patch := range w.plan().Patches {
		order = append(order, patch.Pod.Name)
	}
	if got, want := strings.Join(order, " "), "game-05 game-00 game-03 game-01 game-04 game-02"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// TestScatterByEveryValue checks that the value * spreads the pods of each zone.
func TestScatterByEveryValue(t *testing.T) {
	w := newWorld(t, 9)
	for i, pod := range w.pods {
		pod.Labels = map[string]string{"app": "game", "zone": string("aaaabbbbc"[i])}
	}
	zones := func(strategy v1alpha1.UpdateScatterStrategy) string {
		w.accept(func(s *v1alpha1.SidecarSetSpec) {
			s.Containers[0].Image = "agent:2"
			s.UpdateStrategy.MaxUnavailable, s.UpdateStrategy.ScatterStrategy = new(intstr.FromString("100%")), strategy
		})
		var order strings.Builder
		for _, patch := range w.plan().Patches {
			order.WriteString(patch.Pod.Labels["zone"])
		}
		return order.String()
	}
	each := zones(v1alpha1.UpdateScatterStrategy{{Key: "zone", Value: "a"}, {Key: "zone", Value: "b"}})
	if each == "aaaabbbbc" || len(each) != 9 {
		t.Fatalf("zones %s by value", each)
	}
	if got := zones(v1alpha1.UpdateScatterStrategy{{Key: "zone", Value: "*"}}); got != each {
		t.Errorf("zones %s, want %s, as with the names of all values", got, each)
	}
	if got := zones(v1alpha1.UpdateScatterStrategy{{Key: "rack", Value: "*"}}); got != "aaaabbbbc" {
		t.Errorf("zones %s by a label that no pod has", got)
	}
}

// TestRevisionsThatNothingNeeds checks which of twelve revisions are deleted. A pod has the first one, and the last one is in
// force.
func TestRevisionsThatNothingNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		limit *int32
		// named is the revision that the set names, from to the first and the last one that are deleted.
		named, from, to int
	}{
		"ten by default":       {nil, 0, 1, 2},
		"ten in all":           {new(int32(10)), 0, 1, 2},
		"with a named one":     {new(int32(10)), 1, 2, 3},
		"all":                  {new(int32(12)), 0, 0, 0},
		"more":                 {new(int32(20)), 0, 0, 0},
		"fewer than are used":  {new(int32(1)), 1, 2, 10},
		"as many as are used":  {new(int32(2)), 0, 1, 10},
		"one more than in use": {new(int32(3)), 0, 1, 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.set.Spec.UpdateStrategy.Paused, w.set.Spec.RevisionHistoryLimit = true, test.limit
			for i := range 11 {
				w.accept(func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = fmt.Sprint("agent:", i+2) })
			}
			if test.named > 0 {
				w.set.Status.InForce.NamedRevision = w.revisions[test.named].Name
			}
			var want, deleted []string
			if test.to > 0 {
				for _, rev := range w.revisions[test.from : test.to+1] {
					want = append(want, rev.Name)
				}
			}
			for _, rev := range w.plan().DeleteRevisions {
				deleted = append(deleted, rev.Name)
			}
			if fmt.Sprint(deleted) != fmt.Sprint(want) {
				t.Errorf("deleted %v, want %v", deleted, want)
			}
		})
	}
}

// BenchmarkPlan plans a step of a set with 3,000 pods, half of which are updated, that updates the others.
func BenchmarkPlan(b *testing.B) { benchmarkPlan(b, 3000, "50%") }

// BenchmarkSlowPlan plans a step of a set with 1,000 pods, half of which are updated, that updates one, as most steps do.
func BenchmarkSlowPlan(b *testing.B) { benchmarkPlan(b, 1000, "1") }

func benchmarkPlan(b *testing.B, pods int, maxUnavailable string) {
	b.Helper()
	t := &testing.T{}
	w := newWorld(t, pods)
	w.accept(func(s *v1alpha1.SidecarSetSpec) {
		s.Containers[0].Image = "agent:2"
		s.UpdateStrategy.MaxUnavailable = new(intstr.FromString("50%"))
	})
	w.apply(w.plan())
	w.now = w.now.Add(time.Minute)
	for _, pod := range w.pods {
		w.run(pod)
	}
	w.set.Spec.UpdateStrategy.MaxUnavailable = new(intstr.Parse(maxUnavailable))
	b.ReportAllocs()
	for b.Loop() {
		w.plan()
	}
}
