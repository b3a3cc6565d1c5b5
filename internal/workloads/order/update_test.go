// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

func orderedBy(keys ...string) *pub.UpdatePriorityStrategy {
	s := &pub.UpdatePriorityStrategy{}
	for _, key := range keys {
		s.OrderPriority = append(s.OrderPriority, pub.UpdatePriorityOrderTerm{OrderedKey: key})
	}
	return s
}

func weighted(weights map[string]int32) *pub.UpdatePriorityStrategy {
	s := &pub.UpdatePriorityStrategy{}
	for role, weight := range weights {
		s.WeightPriority = append(s.WeightPriority, pub.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"role": role}},
		})
	}
	return s
}

func randomUpdateOptions(r *rand.Rand) UpdateOptions {
	options := UpdateOptions{}
	switch r.IntN(3) {
	case 0:
		options.Priority = orderedBy("role")
	case 1:
		options.Priority = weighted(map[string]int32{"a": 10, "b": 5})
	}
	if r.IntN(2) == 0 {
		options.Scatter = v1alpha1.UpdateScatterStrategy{{Key: "role", Value: "a"}, {Key: "role", Value: "b"}}
	}
	if r.IntN(2) == 0 {
		options.Pinned = func(p *corev1.Pod) bool { return strings.HasSuffix(p.Name, "3") }
	}
	return options
}

func TestUpdateOrder(t *testing.T) {
	pinned := func(p *corev1.Pod) bool { return p.Labels["pinned"] != "" }
	for name, test := range map[string]struct {
		pods    []*corev1.Pod
		options UpdateOptions
		want    []string
	}{
		"no pods": {want: []string{}},
		"unassigned, pending, not ready": {
			pods: []*corev1.Pod{
				pod("a", label("role", "9")), pod("b", notReady), pod("c", inPhase(corev1.PodPending), notReady),
				pod("d", node(""), inPhase(corev1.PodPending), notReady),
			},
			options: UpdateOptions{Priority: orderedBy("role")}, want: []string{"d", "c", "b", "a"},
		},
		"readiness ignored": {
			pods:    []*corev1.Pod{pod("a", notReady), pod("b", label("role", "9"))},
			options: UpdateOptions{Priority: orderedBy("role"), IgnoreProgress: true}, want: []string{"b", "a"},
		},
		"priority before readiness": {
			pods:    []*corev1.Pod{pod("a", notReady), pod("b", label("role", "9")), pod("c", label("role", "9"), notReady)},
			options: UpdateOptions{Priority: orderedBy("role"), PriorityFirst: true}, want: []string{"c", "b", "a"},
		},
		"weights that match are added": {
			pods: []*corev1.Pod{
				pod("a", label("role", "primary")), pod("b"), pod("c", label("role", "secondary")),
				pod("d", label("role", "secondary"), label("canary", "true")),
			},
			options: UpdateOptions{Priority: &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
				{Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"role": "primary"}}},
				{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"role": "secondary"}}},
				{Weight: 2, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}},
			}}},
			want: []string{"d", "c", "a", "b"},
		},
		"trailing integer, descending": {
			pods: []*corev1.Pod{
				pod("a", label("role", "node-2")), pod("b", label("role", "node-10")), pod("c", label("role", "x")),
				pod("d", label("role", "2-node")), pod("e", label("role", "")), pod("f", label("role", "99999999999999999999")),
			},
			options: UpdateOptions{Priority: orderedBy("role")}, want: []string{"b", "a", "c", "d", "e", "f"},
		},
		"earlier keys first, no key last": {
			pods: []*corev1.Pod{
				pod("a"), pod("b", label("second", "9")), pod("c", label("first", "1")),
				pod("d", label("first", "0"), label("second", "99")),
			},
			options: UpdateOptions{Priority: orderedBy("first", "second")}, want: []string{"c", "d", "b", "a"},
		},
		"pinned pods first, whatever their labels are": {
			pods: []*corev1.Pod{
				pod("a", label("role", "9")), pod("b", label("pinned", "1"), label("role", "1")),
				pod("c", label("pinned", "1"), label("role", "5")),
			},
			options: UpdateOptions{Priority: orderedBy("role"), Pinned: pinned}, want: []string{"b", "c", "a"},
		},
		"tie": {
			pods: []*corev1.Pod{pod("a"), pod("b"), pod("c", label("role", "1"))},
			options: UpdateOptions{Priority: orderedBy("role"), Tie: func(a, b *corev1.Pod) int {
				return strings.Compare(b.Name, a.Name)
			}},
			want: []string{"c", "b", "a"},
		},
		"newer pods before older pods of the same priority": {
			pods: []*corev1.Pod{pod("a"), pod("b", created(time.Minute))},
			want: []string{"b", "a"},
		},
		"scatter": {
			pods: []*corev1.Pod{
				pod("a1", label("role", "x")), pod("a2", label("role", "x")), pod("a3", label("role", "x")),
				pod("b1"), pod("b2"), pod("b3"), pod("b4"),
			},
			options: UpdateOptions{Scatter: v1alpha1.UpdateScatterStrategy{{Key: "role", Value: "x"}}},
			want:    []string{"a1", "b1", "b2", "a2", "b3", "b4", "a3"},
		},
		"scatter after other pods were updated": {
			pods: []*corev1.Pod{pod("a1", label("role", "x")), pod("a2", label("role", "x")), pod("b1"), pod("b2"), pod("b3")},
			options: UpdateOptions{
				Scatter: v1alpha1.UpdateScatterStrategy{{Key: "role", Value: "x"}},
				All: []*corev1.Pod{
					pod("a1", label("role", "x")), pod("a2", label("role", "x")), pod("a3", label("role", "x")),
					pod("b1"), pod("b2"), pod("b3"),
				},
			},
			want: []string{"b1", "a1", "b2", "b3", "a2"},
		},
		"scatter does not move pinned pods": {
			pods: []*corev1.Pod{
				pod("a1", label("role", "x"), label("pinned", "1")), pod("a2", label("role", "x")),
				pod("a3", label("role", "x")), pod("b1"), pod("b2"),
			},
			options: UpdateOptions{Pinned: pinned, Scatter: v1alpha1.UpdateScatterStrategy{{Key: "role", Value: "x"}}},
			want:    []string{"a1", "b1", "a2", "b2", "a3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.options.All == nil {
				test.options.All = test.pods
			}
			if diff := gocmp.Diff(test.want, names(Update(test.pods, test.options))); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdateWaitsForLabels(t *testing.T) {
	role := planning.Markers{
		Labels: sets.New("role"), Conditions: sets.New[corev1.PodConditionType]("example.com/role"),
	}
	ready, tenSeconds := []*corev1.Pod{pod("a", readyFor(0))}, []*corev1.Pod{pod("a", readyFor(10*time.Second))}
	unknown := func(kind corev1.PodConditionType, status corev1.ConditionStatus) []*corev1.Pod {
		return []*corev1.Pod{pod("a", condition(kind, status, 5*time.Second))}
	}
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		// strategy is by role if it is nil, and writes is the label key that markers write, role if it is empty.
		strategy *pub.UpdatePriorityStrategy
		writes   string
		begun    time.Duration
		other    *corev1.Pod
		want     time.Duration
	}{
		"no strategy":                     {pods: ready, strategy: &pub.UpdatePriorityStrategy{}},
		"no marker writes the key":        {pods: ready, writes: "other"},
		"the pod has the label":           {pods: []*corev1.Pod{pod("a", readyFor(0), label("role", "x"))}},
		"another key is enough":           {pods: []*corev1.Pod{pod("a", readyFor(0), label("tier", "1"))}, strategy: orderedBy("role", "tier")},
		"ready for 10 s":                  {pods: tenSeconds, other: pod("b", label("role", "x")), want: 20 * time.Second},
		"ready for longer than the bound": {pods: []*corev1.Pod{pod("a", readyFor(31*time.Second))}},
		"not ready":                       {pods: []*corev1.Pod{pod("a", readyFor(0), notReady)}},
		"condition Unknown for 5 s":       {pods: unknown("example.com/role", corev1.ConditionUnknown), want: 25 * time.Second},
		"condition False":                 {pods: unknown("example.com/role", corev1.ConditionFalse)},
		"condition of nobody":             {pods: unknown("example.com/other", corev1.ConditionUnknown)},
		"the longest wait counts": {
			pods:     []*corev1.Pod{pod("a", readyFor(29*time.Second)), pod("b", readyFor(2*time.Second))},
			strategy: weighted(map[string]int32{"x": 1}), want: 28 * time.Second,
		},
		"the update has begun a while ago":       {pods: tenSeconds, begun: 110 * time.Second, want: 10 * time.Second},
		"the update has waited for long enough":  {pods: tenSeconds, begun: WaitLimit},
		"another pod was replaced since":         {pods: tenSeconds, begun: time.Hour, other: pod("b", created(time.Minute), notReady), want: 20 * time.Second},
		"another pod was updated in place since": {pods: tenSeconds, begun: time.Hour, other: pod("b", entered(105*time.Second)), want: 15 * time.Second},
		"another pod was replaced and became ready late": {
			pods: tenSeconds, begun: time.Hour, other: pod("b", created(5*time.Minute), readyFor(time.Second)), want: 20 * time.Second,
		},
		"the readiness of all pods toggles": {pods: tenSeconds, begun: time.Hour, other: pod("b", created(13*time.Minute), readyFor(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			markers := role
			if test.writes != "" {
				markers.Labels = sets.New(test.writes)
			}
			options := WaitOptions{Strategy: cmp.Or(test.strategy, orderedBy("role")), Markers: markers, All: test.pods, Now: now()}
			if test.other != nil {
				options.All = append(slices.Clone(test.pods), test.other)
			}
			if test.begun > 0 {
				options.Begun = ago(test.begun).Time
			}
			if got := Wait(test.pods, options); max(got, 0) != test.want {
				t.Errorf("wait %s, want %s", got, test.want)
			}
		})
	}
}
