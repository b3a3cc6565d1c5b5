// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
)

// claim returns a pod that claims the marks since the second.
func claim(name, version string, since int64) exclusive.Pod {
	return exclusive.Pod{Name: name, UID: types.UID(name), Version: version, Claims: true, Since: time.Unix(since, 0)}
}

func idle(name, version string) exclusive.Pod {
	return exclusive.Pod{Name: name, UID: types.UID(name), Version: version}
}

func marked(pod exclusive.Pod) exclusive.Pod {
	pod.Marked = true
	return pod
}

func termed(pod exclusive.Pod, term int64) exclusive.Pod {
	pod.Term = &term
	return pod
}

func TestDecide(t *testing.T) {
	record := func(uid types.UID, version string) exclusive.Record {
		return exclusive.Record{UID: uid, Version: version}
	}
	cases := map[string]struct {
		group   exclusive.Group
		winner  string
		step    exclusive.Step
		blocker string
		fence   bool
	}{
		"no pods":  {},
		"no claim": {group: exclusive.Group{Pods: []exclusive.Pod{marked(idle("a", "5")), idle("b", "6")}}},
		"first claim": {
			group:  exclusive.Group{Pods: []exclusive.Pod{claim("a", "5", 1), idle("b", "6")}},
			winner: "a", step: exclusive.Look,
		},
		"first claim after a survey": {
			group:  exclusive.Group{Surveyed: true, Pods: []exclusive.Pod{claim("a", "5", 1), idle("b", "6")}},
			winner: "a", step: exclusive.Claim,
		},
		"mark without a record": {
			group:  exclusive.Group{Surveyed: true, Pods: []exclusive.Pod{claim("a", "5", 1), marked(idle("b", "6"))}},
			winner: "a", step: exclusive.Wait, blocker: "b",
		},
		"recorded version": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{claim("a", "5", 1)}},
			winner: "a", step: exclusive.Take,
		},
		"marked": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{marked(claim("a", "9", 1))}},
			winner: "a", step: exclusive.Keep,
		},
		"changed since the record": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{claim("a", "10", 1)}},
			winner: "a", step: exclusive.Claim,
		},
		"record of a version that is not in the cache": {
			group:  exclusive.Group{Record: record("a", "10"), Pods: []exclusive.Pod{claim("a", "9", 1)}},
			winner: "a", step: exclusive.Wait, blocker: "a",
		},
		"loser has the marks": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{marked(claim("a", "9", 1)), claim("b", "7", 2)}},
			winner: "b", step: exclusive.Wait, blocker: "a",
		},
		"loser has lost the marks": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{claim("a", "12", 1), claim("b", "7", 2)}},
			winner: "b", step: exclusive.Claim,
		},
		"loser may still get the marks": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{idle("a", "5"), claim("b", "7", 2)}},
			winner: "b", step: exclusive.Wait, blocker: "a", fence: true,
		},
		"old view of the loser": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{idle("a", "4"), claim("b", "7", 2)}},
			winner: "b", step: exclusive.Wait, blocker: "a",
		},
		"versions that are not comparable": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{idle("a", "x"), claim("b", "7", 2)}},
			winner: "b", step: exclusive.Wait, blocker: "a",
		},
		"loser is not in the cache": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{claim("b", "7", 2)}},
			winner: "b", step: exclusive.Look,
		},
		"loser is gone": {
			group:  exclusive.Group{Record: record("a", "5"), Gone: true, Pods: []exclusive.Pod{claim("b", "7", 2)}},
			winner: "b", step: exclusive.Claim,
		},
		"third pod has the marks": {
			group:  exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{claim("a", "5", 3), marked(idle("c", "8"))}},
			winner: "a", step: exclusive.Wait, blocker: "c",
		},
		"same second: the one in the record": {
			group:  exclusive.Group{Record: record("b", "5"), Pods: []exclusive.Pod{claim("a", "4", 1), marked(claim("b", "6", 1))}},
			winner: "b", step: exclusive.Keep,
		},
		"highest term": {
			group: exclusive.Group{Record: record("a", "5"), Pods: []exclusive.Pod{
				termed(claim("a", "5", 1), 8), termed(claim("b", "6", 9), 7), termed(idle("c", "7"), 9), claim("d", "8", 10)}},
			winner: "a", step: exclusive.Take,
		},
		"same term": {
			group:  exclusive.Group{Record: record("b", "5"), Pods: []exclusive.Pod{termed(claim("a", "4", 1), 7), termed(claim("b", "5", 2), 7)}},
			winner: "b", step: exclusive.Take,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := exclusive.Decide(tc.group)
			if nameOf(d.Winner) != tc.winner || d.Step != tc.step || nameOf(d.Blocker) != tc.blocker || d.Fence != tc.fence {
				t.Errorf("winner %q, step %q, blocker %q, fence %t; want %q, %q, %q, %t",
					nameOf(d.Winner), d.Step, nameOf(d.Blocker), d.Fence, tc.winner, tc.step, tc.blocker, tc.fence)
			}
			for _, pod := range tc.group.Pods {
				if want := tc.winner != "" && pod.Name != tc.winner; d.Loses(pod.UID) != want {
					t.Errorf("pod %s loses: %t, want %t", pod.Name, !want, want)
				}
			}
		})
	}
}

func nameOf(pod *exclusive.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Name
}
