// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func cond(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionProbesResolved, Status: status, Reason: reason, Message: message}
}

func TestNextMovesTransitionTimesOnlyWithTheStatus(t *testing.T) {
	first, later := time.Unix(1_700_000_000, 5), time.Unix(1_700_000_060, 0)
	ok := next(v1alpha1.PodProbeMarkerStatus{}, 1, 3, []metav1.Condition{cond("True", "Resolved", "fine")}, first)
	if ok.MatchedPods != 3 || ok.ObservedGeneration != 1 || !ok.Conditions[0].LastTransitionTime.Time.Equal(time.Unix(1_700_000_000, 0)) {
		t.Fatalf("first status %+v", ok)
	}
	again := next(ok, 1, 3, []metav1.Condition{cond("True", "Resolved", "fine")}, later)
	if !same(ok, again) {
		t.Errorf("nothing changed, and the status did:\n%s", cmp.Diff(ok, again))
	}
	edited := next(ok, 2, 3, []metav1.Condition{cond("True", "Resolved", "fine")}, later)
	if same(ok, edited) || !edited.Conditions[0].LastTransitionTime.Equal(&ok.Conditions[0].LastTransitionTime) {
		t.Errorf("a new generation: %+v", edited)
	}
	bad := next(ok, 1, 3, []metav1.Condition{cond("False", "ContainerNotFound", "none")}, later)
	if !bad.Conditions[0].LastTransitionTime.Time.Equal(later) {
		t.Errorf("the status changed at %v: %+v", later, bad)
	}
}

func TestNews(t *testing.T) {
	status := func(conditions ...metav1.Condition) v1alpha1.PodProbeMarkerStatus {
		return v1alpha1.PodProbeMarkerStatus{Conditions: conditions}
	}
	bad := cond("False", "ContainerNotFound", `probe "p": no container "db" (1 of 2 matched pods, such as a)`)
	cases := map[string]struct {
		before, after v1alpha1.PodProbeMarkerStatus
		news          bool
	}{
		"nothing wrong":        {after: status(cond("True", "Resolved", ""))},
		"wrong from the start": {after: status(bad), news: true},
		"newly wrong":          {before: status(cond("True", "Resolved", "")), after: status(bad), news: true},
		"still wrong":          {before: status(bad), after: status(bad)},
		"wrong for more pods": {before: status(bad), after: status(cond("False", "ContainerNotFound",
			`probe "p": no container "db" (2 of 3 matched pods, such as b)`))},
		"wrong in another way": {before: status(bad), news: true, after: status(cond("False", "ContainerNotFound",
			`probe "p": no container "cache" (1 of 2 matched pods, such as a)`))},
		"right again": {before: status(bad), after: status(cond("True", "Resolved", ""))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := len(news(tc.before, tc.after)) > 0; got != tc.news {
				t.Errorf("news: %t, want %t", got, tc.news)
			}
		})
	}
}

func TestLooks(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	start := time.Unix(1_700_000_000, 0)
	l := newLooks()
	steps := []struct {
		name       string
		uid        types.UID
		generation int64
		after      time.Duration
		want       time.Duration
	}{
		{"the first look", "a", 1, 0, 0},
		{"too soon", "a", 1, 300 * time.Millisecond, 700 * time.Millisecond},
		{"an edit", "a", 2, 400 * time.Millisecond, 0},
		{"too soon after it", "a", 2, 500 * time.Millisecond, 900 * time.Millisecond},
		{"late enough", "a", 2, 1400 * time.Millisecond, 0},
		{"another marker of the name", "b", 2, 1500 * time.Millisecond, 0},
	}
	for _, step := range steps {
		if got := l.wait(key, step.uid, step.generation, start.Add(step.after)); got != step.want {
			t.Errorf("%s waits %v, want %v", step.name, got, step.want)
		}
	}
	l.again(key)
	if got := l.wait(key, "b", 2, start.Add(1600*time.Millisecond)); got != 0 {
		t.Errorf("a look after one that came to nothing waits %v", got)
	}
}

func TestShort(t *testing.T) {
	if got := short("brief"); got != "brief" {
		t.Errorf("short = %q", got)
	}
	got := short(strings.Repeat("é", 2000))
	if len(got) > maxNote+3 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é...") {
		t.Errorf("short gives %d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}
