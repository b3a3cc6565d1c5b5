// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package overlap_test

import (
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

func TestNamespaces(t *testing.T) {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	in := func(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kubernetes.io/metadata.name", Operator: operator, Values: names}}}
	}
	for name, test := range map[string]struct {
		a, b v1alpha1.SidecarSetSpec
		want bool
	}{
		"all namespaces":         {want: true},
		"one, and all":           {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, want: true},
		"the same":               {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, b: v1alpha1.SidecarSetSpec{SpecificNamespace: &v1alpha1.SpecificNamespace{Namespace: "x"}}, want: true},
		"two":                    {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, b: v1alpha1.SidecarSetSpec{Namespace: "y"}},
		"named by selectors":     {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, b: v1alpha1.SidecarSetSpec{NamespaceSelector: in(metav1.LabelSelectorOpIn, "y", "z")}},
		"excluded by a selector": {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, b: v1alpha1.SidecarSetSpec{SpecificNamespace: &v1alpha1.SpecificNamespace{NamespaceSelector: in(metav1.LabelSelectorOpNotIn, "x")}}},
		"other labels":           {a: v1alpha1.SidecarSetSpec{Namespace: "x"}, b: v1alpha1.SidecarSetSpec{NamespaceSelector: app}, want: true},
		"never":                  {a: v1alpha1.SidecarSetSpec{Namespace: "x", NamespaceSelector: in(metav1.LabelSelectorOpIn, "y")}},
	} {
		test.a.Selector, test.b.Selector = app, app
		if got := overlap.Possible(&test.a, &test.b); got != test.want {
			t.Errorf("%s: overlap %t, want %t", name, got, test.want)
		}
		if got := overlap.Possible(&test.b, &test.a); got != test.want {
			t.Errorf("%s, exchanged: overlap %t, want %t", name, got, test.want)
		}
	}
}

// TestSelectors compares the decision with all labels of few keys and values.
func TestSelectors(t *testing.T) {
	keys, values := []string{"a", "b"}, []string{"1", "2", "3"}
	var all []labels.Set
	// A value that no requirement has stands for all others.
	for _, a := range append(values, "other", "") {
		for _, b := range append(values, "other", "") {
			set := labels.Set{}
			for key, value := range map[string]string{"a": a, "b": b} {
				if value != "" {
					set[key] = value
				}
			}
			all = append(all, set)
		}
	}
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	random := rand.New(rand.NewPCG(1, 25))
	selector := func() *metav1.LabelSelector {
		s := &metav1.LabelSelector{}
		if random.IntN(2) == 0 {
			s.MatchLabels = map[string]string{keys[random.IntN(2)]: values[random.IntN(3)]}
		}
		for range random.IntN(4) {
			requirement := metav1.LabelSelectorRequirement{Key: keys[random.IntN(2)], Operator: operators[random.IntN(4)]}
			if requirement.Operator == metav1.LabelSelectorOpIn || requirement.Operator == metav1.LabelSelectorOpNotIn {
				requirement.Values = []string{values[random.IntN(3)], values[random.IntN(3)]}
			}
			s.MatchExpressions = append(s.MatchExpressions, requirement)
		}
		return s
	}
	found := map[bool]int{}
	for range 5000 {
		a, b := selector(), selector()
		want := false
		for _, set := range all {
			want = want || matches(t, a, set) && matches(t, b, set)
		}
		found[want]++
		if got := overlap.Possible(&v1alpha1.SidecarSetSpec{Selector: a}, &v1alpha1.SidecarSetSpec{Selector: b}); got != want {
			t.Fatalf("overlap of %s and %s: %t, want %t", metav1.FormatLabelSelector(a), metav1.FormatLabelSelector(b), got, want)
		}
	}
	if found[true] < 100 || found[false] < 100 {
		t.Errorf("cases %v, want more of each", found)
	}
}

func matches(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Matches(set)
}
