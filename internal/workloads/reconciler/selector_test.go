// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheckSelector(t *testing.T) {
	for name, test := range map[string]struct {
		selector metav1.LabelSelector
		want     string
	}{
		"ordinary": {selector: metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}},
		}},
		"label": {
			selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "controller-revision-hash": "x"}},
			want:     "spec.selector.matchLabels: must not have the label controller-revision-hash, which Seamark sets",
		},
		"expression": {
			selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpExists}, {Key: "seamark.dev/workload", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
			want: "spec.selector.matchExpressions[1].key: must not be the label seamark.dev/workload, which Seamark sets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkSelector(&test.selector); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error %q, want %q", got, test.want)
			}
		})
	}
}
