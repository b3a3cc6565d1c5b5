// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// newReleasing returns a world with a deleted marker that sets the label web.
func newReleasing(t *testing.T, pods ...*corev1.Pod) *world {
	t.Helper()
	f := newWorld(t)
	f.addPods(pods...)
	f.addMarkers(deleted("web"))
	return f
}

func deleted(name string) *v1alpha1.PodProbeMarker {
	return builders.Marker("ns", name).Probe(label("p", "web")).Deleting().Build()
}

const webEntry = `{"f:metadata":{"f:labels":{"f:web":{}}}}`

func marked(name string) *corev1.Pod {
	return game(name).Label("web", "1").ManagedFields("seamark", "status", webEntry).Build()
}

func unmarked(name string) *corev1.Pod { return game(name).Build() }

func planned(node, probe string) *v1alpha1.NodePodProbe {
	npp := &v1alpha1.NodePodProbe{Spec: v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "ns", Name: "a", Probes: []v1alpha1.ContainerProbe{{Name: probe}},
	}}}}
	npp.Name = node
	return npp
}

// A marker with many pods is released with few looks at them, whatever the order in which they become
// clean.
func TestReleaseOfManyPods(t *testing.T) {
	// Each pass reads the plan of the node.
	const count, passes = 500, 7
	f := newReleasing(t)
	for i := range count {
		f.addPods(marked(fmt.Sprintf("p%03d", i)))
	}
	f.plans["n"], f.plans["other"] = planned("n", "web#p"), planned("other", "api#p")
	f.release("ns")
	if pods, plans := len(fakeapi.Drain(f.toMark)), len(fakeapi.Drain(f.toPlan)); pods != count || plans != 1 {
		t.Fatalf("enqueued %d pods and %d plans, want %d and 1", pods, plans, count)
	}
	for i := range count {
		if !f.update(unmarked(fmt.Sprintf("p%03d", i))) {
			t.Fatalf("pod %d does not enqueue the namespace", i)
		}
		if i%100 == 99 {
			f.release("ns")
		}
	}
	if len(f.released) > 0 {
		t.Fatal("released while a plan has a probe of the marker")
	}
	before, after := f.plans["n"], planned("n", "api#p")
	after.Generation++
	f.plans["n"] = after
	f.r.remainingPlanEvents().Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.NodePodProbe]{ObjectOld: before, ObjectNew: after}, f.queue)
	if len(fakeapi.Drain(f.queue)) == 0 {
		t.Error("the plan does not enqueue the namespace")
	}
	f.release("ns")
	if diff := cmp.Diff([]string{"web"}, f.released); diff != "" || f.computed > 3*count+passes {
		t.Errorf("read %d pods and plans, want at most %d; released (-want +got):\n%s", f.computed, 3*count+passes, diff)
	}
	expect.Equal(t, fmt.Sprintf("wrote the status of a marker whose deletion makes progress: %q", f.statuses), 0, len(f.statuses))
}

// TestRemovedPodsWake checks that a NodePodProbe that removes a pod from a ProbePlan enqueues the namespace of the pod,
// and no other one.
func TestRemovedPodsWake(t *testing.T) {
	f := newWorld(t)
	f.addPods(marked("p"))
	f.addMarkers(deleted("web"))
	f.release("ns")
	fakeapi.Drain(f.queue)
	f.planSlices = []seamarkv1alpha1.ProbePlan{{Pods: []v1alpha1.PodProbe{{Namespace: "ns", UID: "a"}, {Namespace: "other", UID: "b"}}}}
	for _, tc := range []struct {
		before, after []string
		enqueued      int
	}{
		{nil, []string{"a"}, 1},
		{[]string{"a"}, []string{"a", "b"}, 0},
		{[]string{"a"}, nil, 0},
	} {
		before, after := &v1alpha1.NodePodProbe{}, &v1alpha1.NodePodProbe{}
		before.Spec.RemovedPods, after.Spec.RemovedPods, after.Generation = tc.before, tc.after, 1
		f.r.remainingPlanEvents().Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.NodePodProbe]{ObjectOld: before, ObjectNew: after}, f.queue)
		expect.Equal(t, fmt.Sprintf("from %q to %q: namespaces are enqueued", tc.before, tc.after), tc.enqueued, len(fakeapi.Drain(f.queue)))
	}
}

// What is left of all markers of a namespace is found in one pass over its pods, and a pass writes a
// limited number of markers.
func TestReleaseOfManyMarkers(t *testing.T) {
	const markers, pods = 1000, 200
	f := newWorld(t)
	for i := range pods {
		f.addPods(marked(fmt.Sprintf("p%03d", i)))
	}
	for i := range markers {
		f.addMarkers(deleted(fmt.Sprintf("m%03d", i)))
	}
	f.release("ns")
	if f.computed > pods || f.lists > 2 {
		t.Errorf("the marks of %d pods computed with %d lists, want at most %d and 2", f.computed, f.lists, pods)
	}
	for i := range pods {
		f.update(unmarked(fmt.Sprintf("p%03d", i)))
	}
	for passes := 1; len(f.released) < markers; passes++ {
		before := len(f.released)
		f.release("ns")
		if wrote := len(f.released) - before; wrote > maxWrites || passes > markers/maxWrites {
			t.Fatalf("pass %d released %d markers, want at most %d and %d passes", passes, wrote, maxWrites, markers/maxWrites)
		}
	}
	if f.computed > pods {
		t.Errorf("the marks of %d pods were computed, want %d", f.computed, pods)
	}
}

// A pod whose writes are refused is looked at ever more rarely, and the status and events name it.
func TestReleaseOfPodThatRefusesWrites(t *testing.T) {
	f := newReleasing(t, marked("a"), marked("b"))
	f.release("ns")
	f.update(unmarked("a"))
	f.r.Refusals.Note(types.NamespacedName{Namespace: "ns", Name: "b"}, errors.New("apply marks: "+strings.Repeat("denied ", 100)))
	start, wait := f.now, f.release("ns")
	fakeapi.Drain(f.toMark)
	passes := 0
	for f.now.Sub(start) < 10*time.Minute {
		f.now = f.now.Add(wait)
		wait = f.release("ns")
		passes++
	}
	if passes > 20 {
		t.Errorf("%d passes in 10 minutes, want at most 20", passes)
	}
	expect.Equal(t, "enqueued a pod that its controller retries", 0, len(fakeapi.Drain(f.toMark)))
	if len(f.statuses) != 2 {
		t.Fatalf("wrote %d statuses, want 2: what blocks, then how to proceed:\n%q", len(f.statuses), f.statuses)
	}
	const want = "MarksRemoved False WriteFailed: Pods still have marks of the marker (1, such as b). The last write to pod b failed: apply marks: denied"
	if !strings.HasPrefix(f.statuses[0], want) || strings.Contains(f.statuses[0], "kubectl") {
		t.Errorf("first status %q, want %q without advice", f.statuses[0], want)
	}
	if !strings.HasPrefix(f.statuses[1], want) || !strings.Contains(f.statuses[1], "kubectl label pod b -n ns web-") {
		t.Errorf("second status %q, want %q with advice", f.statuses[1], want)
	}
	expect.Equal(t, "events", 2, len(f.events.Events))
	if !f.update(unmarked("b")) {
		t.Error("the pod does not enqueue the namespace")
	}
	f.release("ns")
	if len(f.released) == 0 {
		t.Error("not released after the pod was written")
	}
}

// A pod without an event and without a failed write is enqueued again.
func TestReleaseEnqueuesPodsAgain(t *testing.T) {
	f := newReleasing(t, marked("a"))
	wait := f.release("ns")
	fakeapi.Drain(f.toMark)
	f.now = f.now.Add(wait)
	f.release("ns")
	expect.Equal(t, fmt.Sprintf("pods enqueued after %s without progress", wait), 1, len(fakeapi.Drain(f.toMark)))
}

// The pod changes between the lists and the event handlers in every order.
func TestReleaseWhilePodsChange(t *testing.T) {
	cases := map[string]struct {
		change   func(f *world)
		released bool
	}{
		"pod becomes clean":           {change: func(f *world) { f.update(unmarked("a")) }, released: true},
		"pod is deleted":              {change: func(f *world) { f.remove(marked("a")) }, released: true},
		"pod ends":                    {change: func(f *world) { f.update(builders.Pod("ns", "a").Terminating().Build()) }, released: true},
		"pod changes otherwise":       {change: func(f *world) { f.update(marked("a")) }},
		"other pod is marked late":    {change: func(f *world) { f.update(unmarked("a")); f.addPods(marked("b")) }},
		"recreated with the same key": {change: func(f *world) { f.remove(marked("a")); f.addPods(marked("a")) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newReleasing(t, marked("a"))
			f.release("ns")
			tc.change(f)
			f.release("ns")
			if released := len(f.released) > 0; released != tc.released {
				t.Errorf("released %t, want %t", released, tc.released)
			}
		})
	}
}

func TestReleaseWithoutRemains(t *testing.T) {
	stray := builders.Pod("ns", "a").Label("stray", "1").
		ManagedFields("seamark", "status", `{"f:metadata":{"f:labels":{"f:stray":{}}}}`).Build()
	f := newReleasing(t, stray, unmarked("b"))
	f.release("ns")
	if len(f.released) == 0 {
		t.Error("not released")
	}
}

func TestOutdatedIgnoresConflicts(t *testing.T) {
	conflict := fmt.Errorf("write status: %w", apierrors.NewConflict(schema.GroupResource{}, "web", errRefused))
	if err := outdated(conflict); err != nil {
		t.Errorf("error %v, want none, because the change makes the marker due", err)
	}
	if err := outdated(errRefused); !errors.Is(err, errRefused) {
		t.Errorf("error %v, want %v", err, errRefused)
	}
}

func TestRemains(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:web":{},"f:stray":{}}}}`
	pod := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").ManagedFields("seamark", "status", entry)
	}
	other := builders.Marker("ns", "other").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "other")).Build()
	npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		UID: "uid-a", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "other#p", State: v1alpha1.ProbeSucceeded}},
	}}}}
	onLabel := &blockage{namespace: "ns", marker: "web", pods: blockers{count: 1, example: "a", marks: []mark.Key{mark.Label("web")}}}
	none := &blockage{namespace: "ns", marker: "web"}
	cases := map[string]struct {
		pod    *corev1.Pod
		others []*v1alpha1.PodProbeMarker
		want   *blockage
	}{
		"mark is on the pod":                       {pod: pod().Label("web", "1").Build(), want: onLabel},
		"mark is removed":                          {pod: pod().Build(), want: none},
		"key without a marker":                     {pod: pod().Label("stray", "1").Build(), want: none},
		"mark and a key without a marker":          {pod: pod().Label("web", "1").Label("stray", "1").Build(), want: onLabel},
		"key of another marker with its value":     {pod: pod().Label("web", "other").Build(), others: []*v1alpha1.PodProbeMarker{other}, want: none},
		"key of another marker with the old value": {pod: pod().Label("web", "1").Build(), others: []*v1alpha1.PodProbeMarker{other}, want: onLabel},
		"probes handed to a provider": {
			pod:  pod().Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").Build(),
			want: &blockage{namespace: "ns", marker: "web", pods: blockers{count: 1, example: "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deleted := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")).Deleting().Build()
			markers := plan.NewCompiler().All(append(tc.others, deleted))
			found := newRemains("ns", deleted)
			err := found.addPod(tc.pod, func() (podview.Pod, error) {
				return podview.New(tc.pod, markers, podview.UnknownNode, mark.NodeReport{Plan: npp}, podview.Options{Defaults: plan.KubernetesDefaults()}), nil
			}, "")
			expect.NoError(t, err)
			expect.Equal(t, "remains", tc.want, found.blockages["web"], cmp.AllowUnexported(blockage{}, blockers{}))
			expect.Equal(t, "objects to clean", found.blockages["web"].pods.count, len(found.objects))
		})
	}
}

func TestBlockage(t *testing.T) {
	const denied = `pods "b" is forbidden: denied.`
	block := func(b blockage) blockage {
		b.namespace, b.marker = "ns", "web"
		return b
	}
	marks := []mark.Key{mark.Annotation("cost"), mark.ConditionType("x/idle"), mark.Label("busy"), mark.Label("idle")}
	pods := blockers{}.with("c", denied, nil).with("b", denied, marks).with("a", "", nil)
	const onPods = `MarksRemoved False WriteFailed: Pods still have marks of the marker (3, such as b). ` +
		`The last write to pod b failed: pods "b" is forbidden: denied.`
	cases := map[string]struct {
		blockage blockage
		want     string
	}{
		"pods, no write failed": {
			blockage: block(blockage{pods: blockers{}.with("b", "", nil).with("a", "", nil)}),
			want:     "MarksRemoved False Remaining: Pods still have marks of the marker (2, such as a).",
		},
		"failed writes": {blockage: block(blockage{pods: pods}), want: onPods},
		"plans": {
			blockage: block(blockage{nodes: blockers{}.with("n", "too large", nil)}),
			want: "MarksRemoved False WriteFailed: Plans of nodes still have probes of the marker (1, such as n). " +
				"The last write to the plan of node n failed: too large.",
		},
		"advice": {
			blockage: block(blockage{pods: pods, advise: true}),
			want: onPods + " No progress for more than 1m0s. Allow seamark-manager to patch pods/status, or remove the marks yourself: " +
				"kubectl annotate pod b -n ns cost-; " +
				`kubectl patch pod b -n ns --subresource=status -p '{"status":{"conditions":[{"type":"x/idle","$patch":"delete"}]}}'; ` +
				"kubectl label pod b -n ns busy- idle-. To delete the marker without waiting: " +
				`kubectl patch podprobemarker web -n ns --type=merge -p '{"metadata":{"finalizers":null}}'.`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "condition", tc.want, words(tc.blockage.finding().Condition))
		})
	}
}
