// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

func TestGuards(t *testing.T) {
	one := unavailable(number(1))
	surge := func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.MaxSurge = number(1) }
	runCases(t, map[string]planCase{
		"a scale-in takes another pod": {replicas: 2, pods: "a guard=delete cost=-10, b, c", want: []string{"-b ScaleIn"}},
		"a scale-in waits for the last pods": {
			replicas: 1, change: unavailable(number(3)), pods: "a guard=delete, b guard=update, c", want: []string{"-c ScaleIn"},
		},
		"a scale-in takes an updated pod in place of an old one": {
			replicas: 2, change: one, pods: "a old guard=delete, b, c", want: []string{"-b ScaleIn"},
		},
		"a pod that is named waits":        {replicas: 2, change: naming("a"), pods: "a guard=delete, b"},
		"a pod whose hook ends waits":      {replicas: 1, change: holding, pods: "a, b PreparingDelete guard=delete"},
		"a hook does not begin":            {replicas: 1, change: holding, pods: "a guard=delete example.com/match=on, b guard=delete"},
		"a pod that is not ready waits":    {replicas: 1, pods: "a, b guard=delete notReady cost=10", want: []string{"-a ScaleIn"}},
		"a pod that has ended is replaced": {replicas: 1, pods: "a guard=delete failed", want: []string{"+new", "-a Finished"}},
		"an update takes another pod":      {replicas: 3, change: one, pods: "a old guard=delete, b old guard=delete, c old", want: []string{"+new", "-c Update"}},
		"an update waits for the last pod": {replicas: 2, change: one, pods: "a old guard=delete, b"},
		"an update in place of a pod that is guarded from deletion": {
			replicas: 2, change: all(one, inPlace), pods: "a old guard=delete, b", want: []string{"~a Updating"},
		},
		"an update in place waits": {replicas: 2, change: all(one, inPlace), pods: "a old guard=update, b"},
		"an update in place takes another pod": {
			replicas: 2, change: all(one, inPlace), pods: "a old guard=update, b old", want: []string{"~b Updating"},
		},
		"an update of labels does not wait": {
			replicas: 2, change: all(inPlace, labelled), pods: "a old guard=update, b", want: []string{"~a Updating"},
		},
		"a recreation because of another change waits": {replicas: 1, change: all(one, inPlace, env), pods: "a old guard=delete"},
		"a surge for a guarded pod does not come and go": {
			replicas: 3, change: all(unavailable(number(0)), surge), pods: "a old guard=delete, b, c",
		},
		"a surge replaces another pod": {
			replicas: 2, change: all(unavailable(number(0)), surge), pods: "a old guard=delete, b old, c", want: []string{"+new", "-b Update"},
		},
	})
}

// TestGuardedCondition follows the condition of a set from its first guarded pod until none is.
func TestGuardedCondition(t *testing.T) {
	f := newFixture(t, 1).pod("a guard=delete, b guard=update, c guard=update, d guard=update, e guard=update")
	out := f.plan(t)
	c := conditionsOf(&out.Status).Find(planning.PodsGuarded)
	if want := "PodDisruptionBudget busy guards web-a, web-b, web-c and 1 more"; c == nil || c.Status != "True" || c.Message != want {
		t.Errorf("condition %+v, want True: %s", c, want)
	}
	f.set.Status, f.pods = out.Status, f.pods[:1]
	out = f.plan(t)
	if c := conditionsOf(&out.Status).Find(planning.PodsGuarded); c == nil || c.Status != "False" {
		t.Errorf("condition %+v after the last one, want False", c)
	}
}
