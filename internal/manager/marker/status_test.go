// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func found(status metav1.ConditionStatus, reason, message string) finding {
	return finding{Condition: metav1.Condition{Type: v1alpha1.ConditionProbesResolved, Status: status, Reason: reason, Message: message}}
}

func TestNextChangesTransitionTimesOnlyWithTheStatus(t *testing.T) {
	first, later := time.Unix(1_700_000_000, 5), time.Unix(1_700_000_060, 0)
	ok := next(v1alpha1.PodProbeMarkerStatus{}, 1, 3, []finding{found("True", "Resolved", "fine")}, first)
	if ok.MatchedPods != 3 || ok.ObservedGeneration != 1 || !ok.Conditions[0].LastTransitionTime.Time.Equal(time.Unix(1_700_000_000, 0)) {
		t.Fatalf("first status %+v", ok)
	}
	again := next(ok, 1, 3, []finding{found("True", "Resolved", "fine")}, later)
	if !equality.Semantic.DeepEqual(ok, again) {
		t.Errorf("status differs without a change:\n%s", cmp.Diff(ok, again))
	}
	edited := next(ok, 2, 3, []finding{found("True", "Resolved", "fine")}, later)
	if equality.Semantic.DeepEqual(ok, edited) || !edited.Conditions[0].LastTransitionTime.Equal(&ok.Conditions[0].LastTransitionTime) {
		t.Errorf("status of the new generation: %+v", edited)
	}
	bad := next(ok, 1, 3, []finding{found("False", "ContainerNotFound", "none")}, later)
	if !bad.Conditions[0].LastTransitionTime.Time.Equal(later) {
		t.Errorf("transition time is not %v: %+v", later, bad)
	}
}

// A marker has the condition about its pods only while it has none, and it is no news.
func TestMarkerWithoutPods(t *testing.T) {
	first, later := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_060, 0)
	empty := next(v1alpha1.PodProbeMarkerStatus{}, 1, 0, []finding{unmatched()}, first)
	expect.Equal(t, "status without a change", empty, next(empty, 1, 0, []finding{unmatched()}, later))
	expect.Equal(t, "news", 0, len(news(v1alpha1.PodProbeMarkerStatus{}, nil, []finding{unmatched()})))
	expect.Equal(t, "conditions with a pod", 0, len(next(empty, 1, 1, nil, later).Conditions))
}

func TestNews(t *testing.T) {
	const resolved = v1alpha1.ConditionProbesResolved
	good := found("True", "Resolved", "")
	bad := func(cause, message string) finding {
		f := found("False", "ContainerNotFound", message)
		f.cause = cause
		return f
	}
	known := map[string]string{resolved: "db"}
	cases := map[string]struct {
		before finding
		causes map[string]string
		after  finding
		news   bool
	}{
		"no problem":               {after: good},
		"problem of a new marker":  {after: bad("db", ""), news: true},
		"new problem":              {before: good, causes: map[string]string{resolved: ""}, after: bad("db", ""), news: true},
		"same problem":             {before: bad("db", "in 1 pod"), causes: known, after: bad("db", "in 1 pod")},
		"more pods":                {before: bad("db", "in 1 pod"), causes: known, after: bad("db", "in 2 pods")},
		"other cause":              {before: bad("db", ""), causes: known, after: bad("cache", ""), news: true},
		"other reason":             {before: bad("db", ""), causes: known, after: found("False", "PortNotFound", ""), news: true},
		"same reason, new manager": {before: bad("db", "in 1 pod"), after: bad("db", "in 2 pods")},
		"kept problem found again": {before: bad("db", ""), causes: map[string]string{resolved: ""}, after: bad("db", "")},
		"problem is fixed":         {before: bad("db", ""), causes: known, after: good},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before v1alpha1.PodProbeMarkerStatus
			if tc.before.Type != "" {
				before.Conditions = []metav1.Condition{tc.before.Condition}
			}
			expect.Equal(t, "news", tc.news, len(news(before, tc.causes, []finding{tc.after})) > 0)
		})
	}
}

func TestChecks(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	start := time.Unix(1_700_000_000, 0)
	var c checks
	steps := []struct {
		name       string
		uid        types.UID
		generation int64
		after      time.Duration
		want       time.Duration
	}{
		{"first check", "a", 1, 0, 0},
		{"too soon", "a", 1, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"edited marker", "a", 2, 400 * time.Millisecond, 0},
		{"too soon after the edit", "a", 2, 500 * time.Millisecond, 1900 * time.Millisecond},
		{"after the interval", "a", 2, 2400 * time.Millisecond, 0},
		{"recreated marker", "b", 2, 2500 * time.Millisecond, 0},
	}
	for _, step := range steps {
		expect.Equal(t, fmt.Sprintf("%s: wait", step.name), step.want, c.wait(key, step.uid, step.generation, start.Add(step.after)))
	}
	c.retry(key)
	expect.Equal(t, "wait after retry", 0, c.wait(key, "b", 2, start.Add(2600*time.Millisecond)))
}

// TestExcludedNamespace checks the condition of a marker whose pods the manager does not plan.
func TestExcludedNamespace(t *testing.T) {
	w := newWorld(t)
	marker := builders.Marker("excluded", "web").Probe(builders.Probe("p").Condition("game.io/idle")).Build()
	marker.Finalizers = []string{v1alpha1.PodProbeMarkerFinalizer}
	w.addMarkers(marker)
	if _, err := w.r.Reconcile(t.Context(), request("excluded")); err != nil {
		t.Fatal(err)
	}
	if want := `NamespaceExcluded`; !strings.Contains(strings.Join(w.statuses, "\n"), want) {
		t.Errorf("conditions %q, want %s", w.statuses, want)
	}
}

// newMarker returns a world with a marker that has just been created.
func newMarker(t *testing.T) (*world, *v1alpha1.PodProbeMarker) {
	t.Helper()
	f := newWorld(t)
	marker := builders.Marker("ns", "web").Probe(label("p", "web")).Build()
	marker.Finalizers, marker.ResourceVersion = nil, "10"
	f.addMarkers(marker)
	return f, marker
}

func (f *world) touched(marker *v1alpha1.PodProbeMarker) {
	f.Helper()
	f.addMarkers(marker)
	f.check(marker.Namespace)
}

func TestFinalizerIsNotAddedAgainBeforeTheCacheHasIt(t *testing.T) {
	f, marker := newMarker(t)
	f.check("ns")
	f.touched(marker)
	if diff := cmp.Diff([]int{1}, f.finalizers); diff != "" {
		t.Fatalf("finalizers before the cache has the write (-want +got):\n%s", diff)
	}
	marker.ResourceVersion = "1001" // A user removed the finalizer later.
	f.touched(marker)
	expect.Equal(t, "finalizers after another write", []int{1, 1}, f.finalizers)
}

// A write with the resource version of the cache would be a conflict.
func TestStatusIsNotWrittenAgainBeforeTheCacheHasIt(t *testing.T) {
	f, marker := newMarker(t)
	marker.Finalizers, marker.Generation = []string{v1alpha1.PodProbeMarkerFinalizer}, 1
	f.stored = "20"
	f.check("ns")
	written := len(f.statuses)
	f.addPods(game("a").Build())
	f.now = f.now.Add(2 * time.Second)
	f.touched(marker)
	if len(f.statuses) != written || written == 0 {
		t.Fatalf("%d conditions written with the old resource version, want 0 more than %d", len(f.statuses), written)
	}
	marker.ResourceVersion = "20"
	if f.touched(marker); marker.Status.MatchedPods != 1 {
		t.Errorf("status has %d matched pods when the cache has the last write, want 1 at once", marker.Status.MatchedPods)
	}
}
