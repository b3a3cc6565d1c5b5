// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// The first pod of each pair is deleted first, although its name comes last.
func TestEachScaleInCriterionDecides(t *testing.T) {
	for name, test := range map[string]struct{ first, second *corev1.Pod }{
		"unassigned":                {pod("z", node(""), inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodPending))},
		"pending before unknown":    {pod("z", inPhase(corev1.PodPending)), pod("a", inPhase(corev1.PodUnknown), notReady)},
		"unknown before running":    {pod("z", inPhase(corev1.PodUnknown)), pod("a", notReady)},
		"not available":             {pod("z", readyFor(time.Second), cost("5")), pod("a", cost("-5"))},
		"not ready":                 {pod("z", notReady, cost("5")), pod("a", readyFor(time.Second), cost("-5"))},
		"lower cost":                {pod("z", cost("-1"), created(2*time.Hour)), pod("a", created(time.Minute))},
		"malformed cost is zero":    {pod("z", cost("many")), pod("a", cost("1"))},
		"cost with a plus is zero":  {pod("z", cost("+10")), pod("a", cost("1"))},
		"cost with a zero is zero":  {pod("z", cost("007")), pod("a", cost("1"))},
		"cost out of range is zero": {pod("z", cost("2147483648")), pod("a", cost("1"))},
		"ready for less time":       {pod("z", readyFor(time.Minute)), pod("a", restarts(7), readyFor(2*time.Minute))},
		"more restarts":             {pod("z", restarts(0, 3), created(2*time.Hour)), pod("a", restarts(2, 2))},
		"newer":                     {pod("z", created(time.Minute)), pod("a")},
		"name":                      {pod("a"), pod("b")},
	} {
		t.Run(name, func(t *testing.T) {
			options := ScaleInOptions{Available: func(p *corev1.Pod) bool {
				return now().Sub(p.Status.Conditions[0].LastTransitionTime.Time) >= 30*time.Second
			}}
			want := []string{test.first.Name, test.second.Name}
			for _, pods := range [][]*corev1.Pod{{test.first, test.second}, {test.second, test.first}} {
				if diff := cmp.Diff(want, names(ScaleIn(pods, options))); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestScaleInTakesPodsFromCrowdedNodesInTurns(t *testing.T) {
	pods := []*corev1.Pod{
		pod("a1", node("a")), pod("a2", node("a")), pod("a3", node("a")),
		pod("b1", node("b")), pod("b2", node("b")), pod("c1", node("c")),
	}
	// After each deletion, the difference between two nodes is as small as possible.
	want := []string{"a1", "a2", "b1", "a3", "b2", "c1"}
	if diff := cmp.Diff(want, names(ScaleIn(pods, ScaleInOptions{}))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestScaleInTakesPodsFromCrowdedZones(t *testing.T) {
	zone := func(name string) map[string]string { return map[string]string{corev1.LabelTopologyZone: name} }
	options := ScaleInOptions{
		TopologyKeys: []string{corev1.LabelTopologyZone},
		Nodes:        map[string]map[string]string{"n1": zone("west"), "n2": zone("west"), "n3": zone("east"), "n4": {}},
	}
	pods := []*corev1.Pod{
		pod("e", node("n3")), pod("w1", node("n1")), pod("w2", node("n2")), pod("w3", node("n2")), pod("x", node("n4")),
	}
	want := []string{"w1", "w2", "e", "w3", "x"}
	if diff := cmp.Diff(want, names(ScaleIn(pods, options))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// randomPod returns a pod with few different values, so that many criteria are equal.
func randomPod(r *rand.Rand, name string) *corev1.Pod {
	p := pod(name, node([]string{"", "n1", "n2", "n3"}[r.IntN(4)]),
		inPhase([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodUnknown}[r.IntN(3)]),
		readyFor(time.Duration(r.IntN(3))*time.Minute), cost([]string{"0", "-3", "x", "4"}[r.IntN(4)]),
		restarts(int32(r.IntN(2))), created(time.Duration(1+r.IntN(3))*time.Hour),
		label("role", []string{"a", "b", "a-1", "b-2"}[r.IntN(4)]))
	if r.IntN(3) == 0 {
		notReady(p)
	}
	if r.IntN(4) == 0 {
		delete(p.Labels, "role")
	}
	return p
}

func TestOrdersDoNotDependOnTheInputOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		pods := make([]*corev1.Pod, 2+r.IntN(20))
		for i := range pods {
			pods[i] = randomPod(r, fmt.Sprintf("pod-%02d", i))
		}
		in := ScaleInOptions{}
		if r.IntN(2) == 0 {
			in.TopologyKeys = []string{"zone", corev1.LabelHostname}
			in.Nodes = map[string]map[string]string{
				"n1": {"zone": "a", corev1.LabelHostname: "n1"},
				"n2": {"zone": "a", corev1.LabelHostname: "n2"}, "n3": {"zone": "b"},
			}
		}
		update := randomUpdateOptions(r)
		update.All = pods
		scaleIn, updates := names(ScaleIn(pods, in)), names(Update(pods, update))
		for range 5 {
			r.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
			if diff := cmp.Diff(scaleIn, names(ScaleIn(pods, in))); diff != "" {
				t.Fatalf("seed %d: scale-in order depends on the input order:\n%s", seed, diff)
			}
			if diff := cmp.Diff(updates, names(Update(pods, update))); diff != "" {
				t.Fatalf("seed %d: update order depends on the input order:\n%s", seed, diff)
			}
		}
	}
}

func BenchmarkScaleIn(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	pods := make([]*corev1.Pod, 3000)
	for i := range pods {
		pods[i] = randomPod(r, fmt.Sprintf("pod-%04d", i))
	}
	for b.Loop() {
		ScaleIn(pods, ScaleInOptions{})
	}
}
