// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// many returns markers with so many probes each, all of which declare the same labels. They are
// created one second after the other.
func many(markers, probes int) []*v1alpha1.PodProbeMarker {
	var all []*v1alpha1.PodProbeMarker
	for i := range markers {
		b := builders.Marker("ns", fmt.Sprintf("m%03d", i))
		for j := range probes {
			b.Probe(label(fmt.Sprint("p", j), fmt.Sprint("key-", j)))
		}
		marker := stored(b)
		marker.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		all = append(all, marker)
	}
	return all
}

// A pod that all markers of a namespace select makes all of them due. The plan of each pod is
// computed once, the pass writes a limited number of markers, and another namespace does not wait.
func TestManyRivals(t *testing.T) {
	const markers, pods = 1000, 10
	f := newWorld(t)
	f.addMarkers(many(markers, 32)...)
	f.addMarkers(stored(builders.Marker("other", "web").Probe(label("p", "a"))))
	for i := range pods {
		f.addPods(game(fmt.Sprint("p", i)).Build())
	}
	f.addPods(builders.Pod("other", "a").Label("app", "game").Build())
	written := func(namespace string) int {
		n := 0
		for key, marker := range f.markers {
			if key.Namespace == namespace && marker.Status.ObservedGeneration > 0 {
				n++
			}
		}
		return n
	}
	f.check("ns")
	if n := written("ns"); f.computed != pods+1 || n != maxWrites {
		t.Errorf("first pass: %d plans computed and %d markers written, want %d and the report of a node, and %d", f.computed, n, pods, maxWrites)
	}
	f.check("other")
	expect.Equal(t, "the marker of the other namespace has no status", 1, written("other"))
	for range markers/maxWrites - 1 {
		f.check("ns")
	}
	if n := written("ns"); n != markers {
		t.Fatalf("%d markers have a status after %d passes, want %d", n, markers/maxWrites, markers)
	}
	if reason := f.markers[client.ObjectKey{Namespace: "ns", Name: "m064"}].Status.Conditions[0].Reason; reason != "TooManyMarkers" {
		t.Errorf("reason %s for the 65th marker, want TooManyMarkers", reason)
	}
}

// A namespace rests after a pass, and events in between do not shorten this.
func TestNamespaceRests(t *testing.T) {
	f := newWorld(t)
	f.addMarkers(many(2, 1)...)
	f.addPods(game("a").Build())
	f.check("ns")
	f.addMarkers(f.markers[client.ObjectKey{Namespace: "ns", Name: "m001"}])
	computed := f.computed
	result, err := f.r.Reconcile(t.Context(), request("ns"))
	if err != nil || result.RequeueAfter != minPause || f.computed != computed {
		t.Errorf("result %+v, error %v, %d plans computed; want a pass after %s", result, err, f.computed-computed, minPause)
	}
}

func request(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// A pass whose context ends does no further work, and the next one handles its markers.
func TestPassStopsWithItsContext(t *testing.T) {
	f := newWorld(t)
	f.addMarkers(many(3, 1)...)
	f.addMarkers(deleted("web"))
	f.addPods(game("a").Build(), marked("b"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, reconcileOne := range map[string]func(context.Context, reconcile.Request) (reconcile.Result, error){
		"status": f.r.Reconcile, "release": f.r.Release,
	} {
		if _, err := reconcileOne(ctx, request("ns")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want %v", name, err, context.Canceled)
		}
	}
	if f.computed > 0 || len(f.statuses) > 0 {
		t.Errorf("%d plans computed and %d conditions written, want none", f.computed, len(f.statuses))
	}
	f.check("ns")
	f.release("ns")
	if len(f.statuses) != 3*3 || len(fakeapi.Drain(f.toMark)) != 1 {
		t.Errorf("%d conditions written by the next pass, want 9, and one pod to clean", len(f.statuses))
	}
}

// A marker whose status is refused does not keep the others of the namespace from theirs.
func TestRefusedStatus(t *testing.T) {
	f := newWorld(t)
	f.addMarkers(many(3, 1)...)
	f.fail = errRefused
	if _, err := f.r.Reconcile(t.Context(), request("ns")); !errors.Is(err, errRefused) {
		t.Fatalf("error %v, want %v", err, errRefused)
	}
	f.fail = nil
	f.now = f.now.Add(interval)
	f.check("ns")
	expect.Equal(t, fmt.Sprintf("conditions written after %s", interval), 3*4, len(f.statuses))
}

// An agent reports an error with a reason and a text that break the rules of conditions.
func TestForgedErrors(t *testing.T) {
	f := newWorld(t)
	f.addMarkers(stored(builders.Marker("ns", "web").Probe(label("p", "a"))))
	pod := game("a").Node("n").Build()
	f.addPods(pod)
	f.slices = []seamarkv1alpha1.ProbeReport{{NodeName: "n", Pods: []seamarkv1alpha1.PodReport{{
		Namespace: "ns", Name: "a", UID: string(pod.UID),
		Errors: []v1alpha1.ContainerProbeError{{Name: "web#p", Reason: "not a reason!", Message: strings.Repeat("é", 1000) + "\xff"}},
	}}}}
	f.check("ns")
	want := `ProbesResolved False CannotRun: Probe "p": cannot be run (1 of 1 matched pods, such as a: ` + strings.Repeat("é", 128) + ")."
	if !slices.Contains(f.statuses, want) {
		t.Errorf("conditions %q, want %q", f.statuses, want)
	}
}

func TestAgenda(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var a agenda
	steps := []struct {
		name string
		do   func(now time.Time)
		// after is the time since the start.
		after time.Duration
		due   []string
		wait  time.Duration
		// computed is how long the pass computes, and next after which time the next one must start.
		computed, next time.Duration
	}{
		{name: "empty"},
		{
			name: "the longest wait first", after: time.Second,
			do: func(now time.Time) {
				a.add("ns", appointment{"b", now}, appointment{"c", now.Add(-1)}, appointment{"a", now}, appointment{"later", now.Add(time.Second)})
				a.add("other", appointment{"a", now})
			},
			due: []string{"c", "a", "b"}, next: time.Second,
		},
		{name: "rests", after: 1015 * time.Millisecond, do: func(now time.Time) { a.add("ns", appointment{"b", now}) }, wait: 5 * time.Millisecond},
		{
			name: "after the pause", after: 1020 * time.Millisecond,
			do:  func(now time.Time) { a.add("ns", appointment{"later", now.Add(time.Hour)}) }, // It is due earlier.
			due: []string{"b"}, computed: time.Second, next: 3 * time.Second,
		},
		{name: "rests as long as it computed, times three", after: 4 * time.Second, wait: 20 * time.Millisecond},
		{name: "due while it rested", after: 4020 * time.Millisecond, due: []string{"later"}},
		{
			name: "woken", after: 5 * time.Second,
			do: func(now time.Time) {
				a.add("ns", appointment{"x", now.Add(time.Hour)}, appointment{"w", now.Add(time.Minute)})
				if !a.wake("ns") {
					t.Error("nothing is woken")
				}
			},
			due: []string{"w", "x"},
		},
		{name: "nothing to wake", after: 6 * time.Second, do: func(time.Time) {
			if a.wake("ns") || a.wake("none") {
				t.Error("something is woken")
			}
		}},
	}
	for _, step := range steps {
		now := start.Add(step.after)
		if step.do != nil {
			step.do(now)
		}
		due, wait := a.take("ns", now)
		var names []string
		for _, each := range due {
			names = append(names, each.marker)
		}
		if diff := cmp.Diff(step.due, names); diff != "" || wait != step.wait {
			t.Fatalf("%s: waits %s, want %s; due (-want +got):\n%s", step.name, wait, step.wait, diff)
		}
		if wait > 0 {
			continue
		}
		expect.Equal(t, fmt.Sprintf("%s: next pass after", step.name), step.next, a.finish("ns", step.computed, false, now))
	}
	a.finish("ns", 0, true, start)
	a.finish("none", 0, true, start)
	expect.Equal(t, "namespaces that are kept", 1, a.namespaces.Len())
}
