// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Unix(1_000_000, 0)

// ages are the charges of a budget by pod, in seconds before now.
type ages map[string]int

// budget returns a budget that permits so many disruptions.
func budget(allowed int32, charges ages, updating string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 3, ResourceVersion: "7"},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 3, DisruptionsAllowed: allowed, CurrentHealthy: 4, DesiredHealthy: 3, ExpectedPods: 5,
		},
	}
	for pod, age := range charges {
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[pod] = metav1.NewTime(now.Add(-time.Duration(age) * time.Second))
	}
	if updating != "" {
		b.Annotations = map[string]string{Updating: updating}
	}
	return b
}

func deletions(pods ...string) (all []Disruption) {
	for _, pod := range pods {
		all = append(all, Disruption{Pod: pod})
	}
	return all
}

// updates are those to the target t.
func updates(pods ...string) (all []Disruption) {
	for _, pod := range pods {
		all = append(all, Disruption{pod, "t"})
	}
	return all
}

func TestCharge(t *testing.T) {
	const short = "PodDisruptionBudget b needs 3 healthy pods and has 4, of 5"
	many := ages{}
	for i := range Most {
		many[fmt.Sprintf("many-%d", i)] = 1
	}
	unobserved, failed := budget(1, nil, ""), budget(1, nil, "")
	unobserved.Generation = 4
	failed.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
	for name, tc := range map[string]struct {
		before    *policyv1.PodDisruptionBudget
		pods      []Disruption
		permitted []string
		after     *policyv1.PodDisruptionBudget
		refusal   string
	}{
		"one":                {budget(1, nil, ""), deletions("p"), []string{"p"}, budget(0, ages{"p": 0}, ""), ""},
		"as many as allowed": {budget(2, nil, ""), deletions("p", "q", "r"), []string{"p", "q"}, budget(0, ages{"p": 0, "q": 0}, ""), short},
		"none allowed":       {budget(0, nil, ""), deletions("p"), nil, nil, short},
		"negative":           {budget(-1, nil, ""), deletions("p"), nil, nil, short},
		"not observed": {
			unobserved, deletions("p"), nil, nil,
			"PodDisruptionBudget b has changed, and kube-controller-manager has not counted its pods yet",
		},
		"not counted": {failed, deletions("p"), nil, nil, "kube-controller-manager cannot count the pods of PodDisruptionBudget b: no scale"},
		"too many":    {budget(1, many, ""), deletions("p"), nil, nil, "PodDisruptionBudget b has 2000 pods whose disruption is not confirmed"},

		"again":                         {budget(0, ages{"p": 29}, ""), deletions("p"), []string{"p"}, nil, ""},
		"renewed":                       {budget(0, ages{"p": 30}, ""), deletions("p"), []string{"p"}, budget(0, ages{"p": 0}, ""), ""},
		"ended":                         {budget(0, ages{"p": 120}, ""), deletions("p"), nil, nil, short},
		"ended, and charged again":      {budget(1, ages{"p": 120}, ""), deletions("p"), []string{"p"}, budget(0, ages{"p": 0}, ""), ""},
		"other charges stay":            {budget(1, ages{"q": 60}, ""), deletions("p"), []string{"p"}, budget(0, ages{"p": 0, "q": 60}, ""), ""},
		"one of two is charged already": {budget(0, ages{"q": 0}, ""), deletions("p", "q"), []string{"q"}, nil, short},

		"update":                 {budget(1, nil, ""), updates("p"), []string{"p"}, budget(0, ages{"p": 1}, "p=999999/t"), ""},
		"two updates":            {budget(2, nil, ""), updates("q", "p"), []string{"q", "p"}, budget(0, ages{"p": 1, "q": 1}, "p=999999/t,q=999999/t"), ""},
		"update again":           {budget(0, ages{"p": 9}, "p=999991/t"), updates("p"), []string{"p"}, nil, ""},
		"update renewed":         {budget(0, ages{"p": 60}, "p=999940/t"), updates("p"), []string{"p"}, budget(0, ages{"p": 1}, "p=999999/t"), ""},
		"deletion of an updated": {budget(0, ages{"p": 9}, "p=999991/t"), deletions("p"), []string{"p"}, budget(0, ages{"p": 0}, ""), ""},
		"update of a deleted":    {budget(0, ages{"p": 9}, ""), updates("p"), []string{"p"}, nil, ""},
		"update of an evicted": {
			budget(0, ages{"p": 9}, "p=999990/t"), updates("p"), []string{"p"}, nil, "",
		},
		"entries that have ended are dropped": {
			budget(1, ages{"q": 5, "r": 4}, "gone=1/t,q=999995/t,r=1/t,x,=,y=z"), updates("p"), []string{"p"},
			budget(0, ages{"p": 1, "q": 5, "r": 4}, "p=999999/t,q=999995/t"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.before.DeepCopy()
			got := Charge(tc.before, tc.pods, now)
			if diff := cmp.Diff(Decision{Permitted: tc.permitted, Charged: tc.after, Refusal: tc.refusal}, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.before); diff != "" {
				t.Errorf("the budget was changed:\n%s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	for name, tc := range map[string]struct{ before, after *policyv1.PodDisruptionBudget }{
		"update":                   {budget(0, ages{"p": 9, "q": 9}, "p=999991/t,q=999991/t"), budget(0, ages{"q": 9}, "q=999991/t")},
		"deletion":                 {budget(0, ages{"p": 9}, ""), nil},
		"an eviction has taken it": {budget(0, ages{"p": 3}, "p=999991/t"), nil},
		"it has ended":             {budget(0, nil, "p=999991/t"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.after, Release(tc.before, updates("p")), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("budget (-want +got):\n%s", diff)
			}
		})
	}
}
