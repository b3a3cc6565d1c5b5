// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package slicing_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/expect"
)

// plannedPods returns the plans of pods with the names, which are also their UIDs.
func plannedPods(names ...string) []v1alpha1.PodProbe {
	var pods []v1alpha1.PodProbe
	for _, name := range names {
		pods = append(pods, v1alpha1.PodProbe{Namespace: "ns", Name: name, UID: name})
	}
	return pods
}

// stored returns a ProbePlan of node n, which has the UID n.
func stored(number int, pods ...string) *seamarkv1alpha1.ProbePlan {
	slice := &seamarkv1alpha1.ProbePlan{NodeName: "n", Pods: plannedPods(pods...)}
	slice.Name, slice.Generation = seamarkv1alpha1.SliceName("n", number), 1
	slice.OwnerReferences = []metav1.OwnerReference{{UID: "n"}}
	return slice
}

func TestPlace(t *testing.T) {
	letters := strings.Split("a b c d e f g h i j k l m n o p q", " ")
	leaving := stored(0, "a")
	leaving.DeletionTimestamp = &metav1.Time{}
	misnamed := stored(0, "a")
	misnamed.Name = "other.0"
	orphan := stored(0, "a")
	orphan.OwnerReferences[0].UID = "earlier"
	cases := map[string]struct {
		pods   []string
		stored []*seamarkv1alpha1.ProbePlan
		want   []string
	}{
		"no pods":         {},
		"new pods":        {pods: letters, want: []string{"0 a b c d e f g h", "1 i j k l m n o p", "2 q"}},
		"nothing changes": {pods: []string{"a", "b"}, stored: []*seamarkv1alpha1.ProbePlan{stored(1, "b"), stored(0, "a")}},
		"pod goes":        {pods: []string{"a"}, stored: []*seamarkv1alpha1.ProbePlan{stored(0, "a"), stored(1, "b")}, want: []string{"1"}},
		"pod comes": {
			pods: []string{"a", "b", "c"}, stored: []*seamarkv1alpha1.ProbePlan{stored(0, "b"), stored(1, "c")}, want: []string{"0 a b"},
		},
		"pod is replaced": {
			pods: letters[1:9], stored: []*seamarkv1alpha1.ProbePlan{stored(0, letters[:8]...)}, want: []string{"0 b c d e f g h i"},
		},
		"empty slice is used":        {pods: []string{"a"}, stored: []*seamarkv1alpha1.ProbePlan{stored(3)}, want: []string{"0 a"}},
		"more pods than a new slice": {pods: letters[:10], stored: []*seamarkv1alpha1.ProbePlan{stored(0, letters[:9]...)}, want: []string{"1 j"}},
		"pod in two slices": {
			pods: []string{"a", "b"}, stored: []*seamarkv1alpha1.ProbePlan{stored(0, "a"), stored(2, "a", "b")}, want: []string{"2 b"},
		},
		"slice is being deleted":      {pods: []string{"a"}, stored: []*seamarkv1alpha1.ProbePlan{leaving}, want: []string{"0 a"}},
		"name of another node":        {pods: []string{"a"}, stored: []*seamarkv1alpha1.ProbePlan{misnamed}, want: []string{"0 a"}},
		"owned by an earlier node":    {pods: []string{"a"}, stored: []*seamarkv1alpha1.ProbePlan{orphan}, want: []string{"0 a"}},
		"order of pods is that of us": {pods: []string{"a", "b"}, stored: []*seamarkv1alpha1.ProbePlan{stored(0, "b", "a")}, want: []string{"0 a b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, slice := range slicing.Place(plannedPods(tc.pods...), tc.stored, "n") {
				line := fmt.Sprint(slice.Number)
				for _, pod := range slice.Pods {
					line += " " + pod.Name
				}
				got = append(got, line)
			}
			expect.Equal(t, "slices to write", tc.want, got)
		})
	}
}

// TestSlicesOfChangingPods lets pods come and go at random. The slices always have exactly the planned
// pods, no pod moves, one pod changes one slice, and nothing is written twice.
func TestSlicesOfChangingPods(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		slots := map[int]*seamarkv1alpha1.ProbePlan{}
		list := func() []*seamarkv1alpha1.ProbePlan {
			var all []*seamarkv1alpha1.ProbePlan
			for _, slice := range slots {
				all = append(all, slice)
			}
			return all
		}
		var pods []string
		places := map[string]int{}
		for step := range 60 {
			if len(pods) > 0 && random.IntN(5) < 2 {
				pods = slices.Delete(pods, 0, 1)
			} else {
				pods = append(pods, fmt.Sprintf("pod-%03d", step))
			}
			changed := slicing.Place(plannedPods(pods...), list(), "n")
			if len(changed) != 1 {
				t.Fatalf("seed %d, step %d: %d writes for one pod", seed, step, len(changed))
			}
			slots[changed[0].Number] = stored(changed[0].Number)
			slots[changed[0].Number].Pods = changed[0].Pods
			if again := slicing.Place(plannedPods(pods...), list(), "n"); len(again) > 0 {
				t.Fatalf("seed %d, step %d: the same plan causes %d writes", seed, step, len(again))
			}
			npp := &v1alpha1.NodePodProbe{}
			npp.Annotations = map[string]string{v1alpha1.ProbePlansAnnotationKey: ""}
			if diff := cmp.Diff(plannedPods(pods...), slicing.Assemble(npp, list()).Spec.PodProbes); diff != "" {
				t.Fatalf("seed %d, step %d: plan (-want +got):\n%s", seed, step, diff)
			}
			for number, slice := range slots {
				for _, pod := range slice.Pods {
					if before, known := places[pod.Name]; known && before != number {
						t.Fatalf("seed %d, step %d: pod %s moves from slice %d to %d", seed, step, pod.Name, before, number)
					}
					places[pod.Name] = number
				}
			}
		}
	}
}

// TestDefer replaces pods at random, sometimes several at once. The plan always has exactly the living pods, a
// pod that goes costs no write of a slice while there is room, and one that takes its place costs one.
func TestDefer(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		var slots []*seamarkv1alpha1.ProbePlan
		var pods []string
		removed := 0
		gone := func(uid string) bool { return !slices.Contains(pods, uid) }
		for step := range 80 {
			went := 0
			if len(pods) > 0 && random.IntN(2) == 0 {
				went = min(len(pods), 1+random.IntN(3))
				pods = pods[went:]
			} else {
				pods = append(pods, fmt.Sprintf("pod-%03d", step))
			}
			now := slicing.Defer(slicing.Place(plannedPods(pods...), slots, "n"), "n", gone)
			if went > 0 && removed+went <= slicing.MaxRemoved && len(now) > 0 || went == 0 && len(now) != 1 {
				t.Fatalf("seed %d, step %d: %d writes when %d pods go after %d", seed, step, len(now), went, removed)
			}
			for _, slice := range now {
				written := stored(slice.Number)
				written.Pods = slice.Pods
				slots = append(slices.DeleteFunc(slots, func(s *seamarkv1alpha1.ProbePlan) bool { return s == slice.Stored }), written)
			}
			npp := &v1alpha1.NodePodProbe{Spec: v1alpha1.NodePodProbeSpec{RemovedPods: slicing.Removed(slots, gone)}}
			npp.Annotations = map[string]string{v1alpha1.ProbePlansAnnotationKey: ""}
			if diff := cmp.Diff(plannedPods(pods...), slicing.Assemble(npp, slots).Spec.PodProbes); diff != "" {
				t.Fatalf("seed %d, step %d: plan (-want +got):\n%s", seed, step, diff)
			}
			if removed = len(npp.Spec.RemovedPods); removed > slicing.MaxRemoved {
				t.Fatalf("seed %d, step %d: %d pods are removed", seed, step, removed)
			}
		}
	}
}

func TestAssemble(t *testing.T) {
	inSpec := &v1alpha1.NodePodProbe{Spec: v1alpha1.NodePodProbeSpec{PodProbes: plannedPods("a")}}
	inSpec.Generation = 5
	refers := &v1alpha1.NodePodProbe{}
	refers.Generation, refers.Annotations = 5, map[string]string{v1alpha1.ProbePlansAnnotationKey: "0:1,1:1"}
	both := refers.DeepCopy()
	both.Spec = inSpec.Spec
	cases := map[string]struct {
		npp        *v1alpha1.NodePodProbe
		stored     []*seamarkv1alpha1.ProbePlan
		pods       []string
		generation int64
	}{
		"in the spec":               {inSpec, []*seamarkv1alpha1.ProbePlan{stored(0, "b")}, []string{"a"}, 5},
		"in the spec of a rollback": {both, []*seamarkv1alpha1.ProbePlan{stored(0, "b")}, []string{"a"}, 5},
		"in ProbePlans":             {refers, []*seamarkv1alpha1.ProbePlan{stored(1, "b"), stored(0, "c")}, []string{"b", "c"}, 7},
		"one of two":                {refers, []*seamarkv1alpha1.ProbePlan{stored(1, "b")}, []string{"b"}, 6},
		"none":                      {refers, nil, nil, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := slicing.Assemble(tc.npp, tc.stored)
			if diff := cmp.Diff(plannedPods(tc.pods...), got.Spec.PodProbes); diff != "" || got.Generation != tc.generation {
				t.Errorf("generation %d, want %d, pods (-want +got):\n%s", got.Generation, tc.generation, diff)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	slices := []*seamarkv1alpha1.ProbePlan{stored(10), stored(2)}
	slices[0].ResourceVersion, slices[1].ResourceVersion = "95", "812"
	value := slicing.FormatReferences(slicing.References(slices))
	expect.Equal(t, "value", "2:812,10:95", value)
	if parsed, valid := slicing.ParseReferences(value); !valid || !maps.Equal(parsed, slicing.References(slices)) {
		t.Errorf("parsed %v, valid: %t", parsed, valid)
	}
	if parsed, valid := slicing.ParseReferences(slicing.FormatReferences(nil)); !valid || len(parsed) > 0 {
		t.Errorf("parsed %v, valid: %t, want none", parsed, valid)
	}
	for _, value := range []string{"1", "1:", ":1", "-1:1", "0:1,", "0:1,x:2", strings.Repeat("9", 20) + ":1"} {
		if parsed, valid := slicing.ParseReferences(value); valid {
			t.Errorf("%q is valid: %v", value, parsed)
		}
	}
}
