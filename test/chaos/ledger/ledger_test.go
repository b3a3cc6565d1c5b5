// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/chaos/ledger"
	"github.com/seamark-dev/seamark/test/expect"
)

const db = "StatefulSet/db"

func podOf(ordinal int, version string) *corev1.Pod {
	return builders.Pod("ns", fmt.Sprintf("db-%d", ordinal)).UID(fmt.Sprintf("%d-%s", ordinal, version)).Label(ledger.VersionLabel, version).
		Condition(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}).
		Owner(metav1.OwnerReference{Kind: "StatefulSet", Name: "db", Controller: ptr.To(true)}).Build()
}

// goal is that of a StatefulSet with so many replicas.
func goal(replicas int, version string) ledger.Goal {
	return ledger.Goal{Replicas: replicas, MaxUnavailable: 1, Version: version, Ordered: true}
}

// three returns a ledger of a settled set with three pods of the first version.
func three() *ledger.Ledger {
	l := ledger.New()
	l.Want(db, goal(3, "1"))
	for i := range 3 {
		l.See(podOf(i, "1"), false)
	}
	l.Settle()
	return l
}

func end(l *ledger.Ledger, pod *corev1.Pod) {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{}
	l.See(pod, false)
	l.See(pod, true)
}

func TestLedger(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do     func(*ledger.Ledger)
		causes map[string]int
		// violation is a part of the only violation.
		violation string
	}{
		"deleted by the test": {do: func(l *ledger.Ledger) { l.Expect("1-1"); end(l, podOf(1, "1")) }, causes: map[string]int{"test": 1}},
		"deleted by nobody":   {do: func(l *ledger.Ledger) { end(l, podOf(2, "1")) }, causes: map[string]int{"no rule": 1}, violation: "3 replicas"},
		"vanished":            {do: func(l *ledger.Ledger) { l.See(podOf(2, "1"), true) }, causes: map[string]int{"no rule": 1}, violation: "db-2"},
		"scaled down":         {do: func(l *ledger.Ledger) { l.Want(db, goal(2, "1")); end(l, podOf(2, "1")) }, causes: map[string]int{"scale-down": 1}},
		"a wrong ordinal": {
			do: func(l *ledger.Ledger) { l.Want(db, goal(2, "1")); end(l, podOf(0, "1")) }, causes: map[string]int{"no rule": 1},
			violation: "ordinal of the pod is 0",
		},
		"scaled down too far": {
			do:     func(l *ledger.Ledger) { l.Want(db, goal(2, "1")); end(l, podOf(2, "1")); end(l, podOf(1, "1")) },
			causes: map[string]int{"scale-down": 1, "no rule": 1}, violation: "db-1",
		},
		"scaled down long ago": {
			do:     func(l *ledger.Ledger) { l.Want(db, goal(2, "1")); l.Settle(); end(l, podOf(2, "1")) },
			causes: map[string]int{"no rule": 1}, violation: "2 replicas",
		},
		"updated one by one": {
			do: func(l *ledger.Ledger) {
				l.Want(db, goal(3, "2"))
				for i := range 3 {
					end(l, podOf(i, "1"))
					l.See(podOf(i, "2"), false)
				}
			},
			causes: map[string]int{"update": 3},
		},
		"updated two at a time": {
			do:     func(l *ledger.Ledger) { l.Want(db, goal(3, "2")); end(l, podOf(2, "1")); end(l, podOf(1, "1")) },
			causes: map[string]int{"update": 1, "no rule": 1}, violation: "1 pods left of 3, and maxUnavailable is 1",
		},
		"updated while another one is not ready": {
			do: func(l *ledger.Ledger) {
				l.Want(db, goal(3, "2"))
				end(l, podOf(2, "1"))
				unready := podOf(1, "1")
				unready.Status.Conditions = nil
				l.See(unready, false)
				end(l, unready)
			},
			causes: map[string]int{"update": 1, "update of an unready pod": 1},
		},
		"the new template again": {
			do: func(l *ledger.Ledger) {
				l.Want(db, goal(3, "2"))
				end(l, podOf(2, "1"))
				l.See(podOf(2, "2"), false)
				end(l, podOf(2, "2"))
			},
			causes: map[string]int{"update": 1, "no rule": 1}, violation: "current template",
		},
		"a lost node":  {do: func(l *ledger.Ledger) { l.Lose("node-1"); end(l, podOf(2, "1")) }, causes: map[string]int{"lost node": 1}},
		"another node": {do: func(l *ledger.Ledger) { l.Lose("node-2"); end(l, podOf(2, "1")) }, causes: map[string]int{"no rule": 1}, violation: "db-2"},
		"a found node": {
			do: func(l *ledger.Ledger) { l.Lose("node-1"); l.Settle(); end(l, podOf(2, "1")) }, causes: map[string]int{"no rule": 1}, violation: "db-2",
		},
		"ended": {
			do: func(l *ledger.Ledger) {
				pod := podOf(2, "1")
				pod.Status.Phase = corev1.PodFailed
				l.See(pod, false)
				end(l, pod)
			},
			causes: map[string]int{"ended pod": 1},
		},
		"a pod without a set": {
			do: func(l *ledger.Ledger) {
				l.See(builders.Pod("ns", "bare").Build(), false)
				end(l, builders.Pod("ns", "bare").Build())
			},
			causes: map[string]int{"no rule": 1}, violation: "no set",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := three()
			test.do(l)
			expect.Equal(t, "causes", test.causes, l.Causes())
			got := l.Violations()
			if test.violation == "" && len(got) > 0 || test.violation != "" && (len(got) != 1 || !strings.Contains(got[0], test.violation)) {
				t.Errorf("violations %q, want one with %q", got, test.violation)
			}
		})
	}
}
