// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/lapse"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// group returns six random pods: on two nodes, of which one is lost, and on a virtual one. Some are ending, in
// another group, without the container of the probe, or have states of an earlier marker.
func group(r *rand.Rand) (objects []client.Object, pods []*corev1.Pod) {
	one := func(n int) bool { return r.IntN(n) == 0 }
	nodes := []string{"ready", "lost", "virtual"}
	reports := make(map[string]*seamarkv1alpha1.ProbeReport)
	for _, node := range nodes {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		if node == "virtual" {
			object.Labels = map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}
		}
		reports[node] = &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, 0)}, NodeName: node}
		objects = append(objects, object, reports[node])
	}
	for i := range 6 {
		node := nodes[r.IntN(3)]
		b := builders.Pod("ns", fmt.Sprint("p", i)).Label("app", "game").Label("shard", fmt.Sprint(r.IntN(4)/3)).Node(node)
		if one(6) {
			b.Label("role", "primary")
		}
		if one(8) {
			b.Terminating()
		}
		since, message := metav1.NewTime(time.Unix(int64(r.IntN(3)), 0)), fmt.Sprintf(`{"term":%d}`, r.IntN(3))
		if one(3) {
			message = "none"
		}
		if node == "virtual" && !one(4) {
			b.Condition(corev1.PodCondition{Type: "db.io/primary", Status: corev1.ConditionTrue, LastTransitionTime: since, Message: message})
		}
		pod := b.Build()
		pod.ResourceVersion = "2"
		if one(5) {
			pod.Spec.Containers[0].Name = "other"
		}
		state := v1alpha1.ContainerProbeState{Name: "db#p", State: v1alpha1.ProbeSucceeded, LastTransitionTime: since, Message: message}
		switch r.IntN(6) {
		case 0:
			state.State = v1alpha1.ProbeFailed
		case 1:
			state.Plan = "earlier"
		}
		reports[node].Pods = append(reports[node].Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{state}})
		pods, objects = append(pods, pod), append(objects, pod)
	}
	return objects, pods
}

// TestSurvey checks that the pods that a survey adds suffice: the decision is the same as with the views of
// all pods.
func TestSurvey(t *testing.T) {
	decided := make(map[exclusive.Step]int)
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 26))
		objects, pods := group(random)
		marker := builders.Marker("ns", "db").Probe(builders.Probe("p").Condition("db.io/primary").StaleAfter(10).
			Label(v1alpha1.ProbeSucceeded, "role", "primary").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard", TermFrom: &v1alpha1.TermSource{JSONPath: ".term"}})).Build()
		r := reconciler(t, &recorded{}, append(objects, marker)...)
		r.Reader.Serverless = seed%2 == 0
		r.Reader.Lapses = func(node string) lapse.Lapse {
			if node != "lost" {
				return lapse.Lapse{}
			}
			return lapse.Lapse{Cause: lapse.NodeNotReady, Since: time.Unix(1, 0), Length: time.Hour}
		}
		markers, err := r.Reader.Markers(t.Context(), "ns")
		if err != nil {
			t.Fatal(err)
		}
		e, self := markers[0].Exclusives()[0], pods[0]
		record := exclusive.Record{}
		if random.IntN(4) > 0 {
			record = exclusive.Record{UID: pods[random.IntN(6)].UID, Version: fmt.Sprint(1 + random.IntN(3))}
		}
		got, want := cached.NewContest(e, true, exclusive.Group{Record: record}), cached.NewContest(e, true, exclusive.Group{Record: record})
		group, _ := e.Group(self)
		for i, pod := range pods {
			v, err := r.Reader.Pod(t.Context(), pod, markers)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				got.Add(v)
			}
			if !e.IsIn(pod, group) {
				v.Plan = plan.PodPlan{}
			}
			if e.IsIn(pod, group) || pod.UID == record.UID {
				want.Add(v)
			}
		}
		if err := r.survey(t.Context(), got, self, markers[0]); err != nil {
			t.Fatal(err)
		}
		got.Decide()
		want.Decide()
		decided[want.Step]++
		if diff := cmp.Diff(outcome(want.Decision), outcome(got.Decision)); diff != "" {
			t.Errorf("seed %d: decision (-all views +survey):\n%s\nall views: %+v\nsurvey: %+v", seed, diff, want.Group, got.Group)
		}
	}
	if t.Log(decided); len(decided) != 6 {
		t.Errorf("steps %v, want each", decided)
	}
}

// outcome is what matters of a decision.
func outcome(d exclusive.Decision) []any {
	uid := func(pod *exclusive.Pod) types.UID {
		if pod == nil {
			return ""
		}
		return pod.UID
	}
	return []any{uid(d.Winner), d.Step, uid(d.Blocker), d.Fence}
}
