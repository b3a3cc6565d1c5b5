// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// TestLabels holds the labels of all metrics to those whose values are bounded: none
// names a pod.
func TestLabels(t *testing.T) {
	bounded := []string{
		"handler", "in_force", "marker", "method", "namespace", "node", "operation", "probe", "result", "state", "version",
	}
	told, err := programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range told {
		if len(program.Own) < 8 {
			t.Errorf("%s has %d metrics of its own, want 8 at least", program.Name, len(program.Own))
		}
		for _, m := range program.Own {
			for _, label := range m.Labels {
				if !slices.Contains(bounded, label.Name) {
					t.Errorf("%s has the label %s, want one of %v", m.Name, label.Name, bounded)
				}
			}
		}
	}
	var found []string
	for _, m := range told[0].Others {
		found = append(found, m.Name)
	}
	if !slices.Equal(found, others()) {
		t.Errorf("the manager has %v of the libraries' metrics, want %v", found, others())
	}
}

func TestPage(t *testing.T) {
	got := page([]Program{{Name: "p", Own: []Metric{{
		Name: "runs", Type: "histogram", Help: "Runs.", Buckets: []float64{0.5, 1, 20},
		Labels: []Label{{Name: "node"}, {Name: "result", Values: []string{"error", "success"}}},
	}}}})
	const want = "| `runs` | histogram | `node`; `result`: error, success | Runs. Buckets from 0.5 to 20. |\n"
	if !strings.Contains(got, want) {
		t.Errorf("page has no line %q:\n%s", want, got)
	}
}
