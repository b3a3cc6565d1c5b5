// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
)

// FuzzPlan lets nodes fail, go and return, kubelets report, time pass and the process restart at random. There are never
// more pods than parallelism, the cursor of a job goes back only at a restart, and in the end each node has been asked.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + r.IntN(5)
		w := newWorld(t, 1+r.IntN(20), parallelism(limit), policy(30, int32(r.IntN(3))))
		if r.IntN(3) == 0 {
			never(w.job)
		}
		if r.IntN(3) == 0 {
			always(w.job)
		}
		if r.IntN(3) == 0 {
			var list []string
			for _, i := range r.Perm(len(w.nodes)) {
				list = append(list, w.nodes[i].Name)
			}
			names(list...)(w.job)
		}
		for range 150 {
			w.act(r)
			w.step(r.IntN(4))
			if len(w.pods) > limit {
				t.Fatalf("%d pods, parallelism %d", len(w.pods), limit)
			}
			w.consistent()
		}
		w.finish()
	})
}

// act does something at random.
func (w *world) act(r *rand.Rand) {
	node := w.nodes[r.IntN(len(w.nodes))]
	switch r.IntN(9) {
	case 0:
		w.set(node.Name, corev1.NodeReady, []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown}[r.IntN(2)])
	case 1:
		w.set(node.Name, corev1.NodeDiskPressure, []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionFalse}[r.IntN(3)])
	case 2:
		if r.IntN(4) == 0 {
			w.restart()
		}
	case 3:
		w.now = w.now.Add(time.Duration(r.IntN(20)) * time.Second)
		if r.IntN(20) == 0 {
			w.now = w.now.Add(time.Duration(r.IntN(30)) * time.Hour)
		}
	case 4:
		if r.IntN(4) == 0 { // The node is replaced.
			w.nodes = slices.DeleteFunc(w.nodes, func(other *corev1.Node) bool { return other == node })
			w.join(node.Name)
		}
	case 5:
		if len(w.pods) > 0 && r.IntN(4) == 0 {
			w.pods = w.pods[1:]
		}
	default:
		if w.pod(node.Name) != nil {
			w.reports(node.Name, []string{"sha256:1", "ErrImagePull", "ImagePullBackOff", "OutOfpods", "ContainerCreating"}[r.IntN(5)])
		}
	}
}

// consistent checks the status.
func (w *world) consistent() {
	w.Helper()
	s := w.job.Status
	if s.Succeeded < 0 || s.Failed < 0 || s.Active < 0 || s.Succeeded+s.Failed > s.Desired || int(s.Desired) != len(w.targets()) && s.CompletionTime == nil {
		w.Fatalf("status %+v", s)
	}
	position := func(name string) int {
		return slices.IndexFunc(w.targets(), func(node *corev1.Node) bool { return node.Name == name })
	}
	for _, name := range s.Pulling {
		if position(name) > position(s.Cursor) {
			w.Fatalf("node %s is pulling behind the cursor %s", name, s.Cursor)
		}
	}
}

// finish lets all nodes recover and all pulls succeed: then each node has been asked, or failed. The next pass of a job that
// pulls again asks each node that is ready.
func (w *world) finish() {
	w.Helper()
	w.now = w.now.Add(time.Second)
	for _, node := range w.nodes {
		w.set(node.Name, corev1.NodeReady, corev1.ConditionTrue)
		w.set(node.Name, corev1.NodeDiskPressure, corev1.ConditionFalse)
	}
	for range 100 {
		w.pull()
		w.pass(time.Minute)
	}
	w.pull()
	s := w.job.Status
	if s.CompletionTime == nil && int(s.Succeeded+s.Failed) != len(w.nodes) || len(w.pods) > 0 {
		w.Fatalf("%d pods, status %+v", len(w.pods), s)
	}
	for _, node := range w.nodes {
		if joined := node.CreationTimestamp.Time; !slices.Contains(w.created, node.Name) && (s.CompletionTime == nil || joined.Before(s.StartTime.Time)) {
			w.Fatalf("node %s was never asked: %+v", node.Name, s)
		}
	}
	w.nextPass()
}

// nextPass checks the next pass of a job that pulls again, in which one node is not ready.
func (w *world) nextPass() {
	w.Helper()
	if w.job.Spec.CompletionPolicy.Type != v1alpha1.CompleteNever || w.job.Spec.ImagePullPolicy != corev1.PullAlways {
		return
	}
	for range 2 {
		w.created = nil
		w.set(w.nodes[0].Name, corev1.NodeReady, corev1.ConditionUnknown)
		w.now = w.now.Add(24 * time.Hour)
		w.pull()
		if len(w.created) != len(w.nodes)-1 || slices.Contains(w.created, w.nodes[0].Name) {
			w.Fatalf("nodes %v are asked in a pass, want each of %d but %s", w.created, len(w.nodes), w.nodes[0].Name)
		}
	}
}

// FuzzShare compares the shares of namespaces: no place is left while a job wants one, except the tenth that a namespace
// leaves to others, and no namespace gets one while another that wants more has fewer.
func FuzzShare(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		total, claims := r.IntN(30), []imagepull.Claim{}
		for i := range r.IntN(12) {
			claims = append(claims, imagepull.Claim{
				Job:     types.NamespacedName{Namespace: string(rune('a' + r.IntN(4))), Name: fmt.Sprint(i)},
				Rollout: r.IntN(2) == 0, Created: noon.Add(time.Duration(r.IntN(9)) * time.Hour), Active: r.IntN(5), More: r.IntN(9),
			})
		}
		granted := imagepull.Share(total, claims)
		most := max(1, total-max(1, total/10))
		used, given, has, active, wanted := 0, 0, map[string]int{}, map[string]int{}, map[string]int{}
		for _, claim := range claims {
			if granted[claim.Job] > claim.More {
				t.Fatalf("%v gets %d, and wants %d", claim.Job, granted[claim.Job], claim.More)
			}
			used, given = used+claim.Active, given+granted[claim.Job]
			active[claim.Job.Namespace] += claim.Active
			wanted[claim.Job.Namespace] += claim.More
			has[claim.Job.Namespace] += claim.Active + granted[claim.Job]
		}
		permitted := 0
		for namespace, more := range wanted {
			permitted += min(more, max(0, most-active[namespace]))
		}
		if want := min(permitted, max(0, total-used)); given != want {
			t.Fatalf("%d places are given, want %d", given, want)
		}
		for _, poor := range claims {
			for _, rich := range claims {
				if granted[poor.Job] < poor.More && granted[rich.Job] > 0 && has[poor.Job.Namespace]+1 < has[rich.Job.Namespace] {
					t.Fatalf("%v gets a place, while %v has fewer", rich, poor)
				}
			}
		}
	})
}

func TestShare(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	granted := imagepull.Share(10, []imagepull.Claim{
		{Job: key("a", "old"), Created: noon, Active: 4, More: 9},
		{Job: key("b", "young"), Created: noon.Add(time.Hour), More: 9},
		{Job: key("b", "old"), Created: noon, More: 2},
		{Job: key("b", "rollout"), Created: noon.Add(time.Hour), Rollout: true, More: 2},
	})
	for want, job := range map[string]types.NamespacedName{"a/old 1": key("a", "old"), "b/rollout 2": key("b", "rollout"), "b/old 2": key("b", "old"), "b/young 1": key("b", "young")} {
		if got := fmt.Sprint(job, " ", granted[job]); got != want {
			t.Errorf("granted %s, want %s", got, want)
		}
	}
}
