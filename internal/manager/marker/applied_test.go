// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestApplied(t *testing.T) {
	cases := map[string]struct {
		problems        map[string]problems.Mark
		reason, message string
	}{
		"none": {reason: "Applied", message: "All marks are written."},
		"limited": {
			problems: map[string]problems.Mark{"b": {Limited: problems.LimitLoop}, "a": {Limited: problems.LimitLoop}},
			reason:   "WritesLimited",
			message: "Writes of marks are limited (pods: 2, such as a), because the marks change again after each write: " +
				"check whether another marker or client changes the same keys, or labels that select the pods.",
		},
		"limited for two reasons": {
			problems: map[string]problems.Mark{"b": {Limited: problems.LimitLoop}, "a": {Limited: problems.LimitRate}},
			reason:   "WritesLimited",
			message: "Writes of marks are limited (pods: 1, such as b), because the marks change again after each write: " +
				"check whether another marker or client changes the same keys, or labels that select the pods. " +
				"Writes of marks are limited (pods: 1, such as a), because the marks change more often than every 5s: " +
				"check whether a probe changes its state as often, or whether another client changes the same keys.",
		},
		"refused in two pods": {
			problems: map[string]problems.Mark{
				"b": {Refused: map[string]string{"p": "too long"}}, "a": {Refused: map[string]string{"p": "too long", "q": "invalid"}},
			},
			reason: "WriteRefused",
			message: `Probe "p": the API server refuses its marks (pods: 2, such as a): too long. ` +
				`Probe "q": the API server refuses its marks (pods: 1, such as a): invalid.`,
		},
		"value in one pod": {
			problems: map[string]problems.Mark{
				"a": {Values: map[string]string{`probe "p": label map`: `NotAllowed: "b\x1b" is not one of the allowed values`}},
			},
			reason:  "ValueRefused",
			message: `Probe "p": label map is not set (pods: 1, such as a): NotAllowed: "b\x1b" is not one of the allowed values.`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			byPod := make(map[types.NamespacedName]problems.Mark)
			for pod, problem := range tc.problems {
				byPod[types.NamespacedName{Namespace: "ns", Name: pod}] = problem
			}
			got := applied(byPod)
			if got.Reason != tc.reason || got.Message != tc.message || (got.Status == metav1.ConditionTrue) != (len(tc.problems) == 0) {
				t.Errorf("condition %+v, want %s: %s", got.Condition, tc.reason, tc.message)
			}
		})
	}
}

// A problem that an earlier manager stored stays for a minute, because the new one has yet to
// find it. A problem that this manager found ends at once.
func TestStoredProblemSurvivesRestart(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	marker.Status.Conditions = []metav1.Condition{applied(map[types.NamespacedName]problems.Mark{{Name: "a"}: {Limited: problems.LimitLoop}}).Condition}
	found := &problems.Marks{}
	r := New(Options{Problems: found, Now: func() time.Time { return now }})
	check := func(when, reason string) {
		t.Helper()
		f := r.applied(marker)
		r.checks.reported(key, []finding{f})
		expect.Equal(t, when+": reason", reason, f.Reason)
	}
	check("at the start", "WritesLimited")
	now = now.Add(59 * time.Second)
	check("within a minute", "WritesLimited")
	now = now.Add(time.Second)
	check("after a minute", "Applied")

	now = time.Unix(1_700_000_000, 0)
	r = New(r.Options)
	check("after another start", "WritesLimited")
	pod := types.NamespacedName{Namespace: "ns", Name: "a"}
	found.Set(pod, map[types.NamespacedName]problems.Mark{key: {Refused: map[string]string{"p": "too long"}}})
	check("problem found again", "WriteRefused")
	found.Set(pod, nil)
	check("problem solved", "Applied")
	check("problem solved, stored status is outdated", "Applied")
}

// The pods of a stored problem are found one after the other: their number does not change meanwhile.
func TestStoredProblemKeepsItsPodsAfterARestart(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	problem := problems.Mark{Values: map[string]string{`probe "p": label map`: "Missing: the probe printed nothing"}}
	a, b := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	marker.Status.Conditions = []metav1.Condition{applied(map[types.NamespacedName]problems.Mark{a: problem, b: problem}).Condition}
	found := &problems.Marks{}
	r := New(Options{Problems: found, Now: func() time.Time { return now }})
	check := func(when string, pods int) {
		t.Helper()
		f := r.applied(marker)
		r.checks.reported(key, []finding{f})
		if want := fmt.Sprintf("(pods: %d, such as a)", pods); !strings.Contains(f.Message, want) {
			t.Errorf("%s: %q, want %s", when, f.Message, want)
		}
	}
	r.started()
	found.Set(a, map[types.NamespacedName]problems.Mark{key: problem})
	check("one pod is found", 2)
	found.Set(b, map[types.NamespacedName]problems.Mark{key: problem})
	check("all pods are found", 2)
	found.Set(b, nil)
	check("one is solved", 1)

	r = New(r.Options)
	r.started()
	check("after another start", 2)
	now = now.Add(startup)
	check("after a minute", 1)
}
