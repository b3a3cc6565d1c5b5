// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

const (
	// everyValue is the value of a term that stands for each value of its label.
	everyValue = "*"
	// maxValues is the number of terms after such terms are replaced, because each of them orders all pods: authors of pods
	// choose the values.
	maxValues = 64
)

// scatter returns the strategy for the pods, in which each term names one value. A value that only one pod has changes no
// order, and is omitted.
func scatter(strategy v1alpha1.UpdateScatterStrategy, pods []*corev1.Pod) v1alpha1.UpdateScatterStrategy {
	if !slices.ContainsFunc(strategy, func(t v1alpha1.UpdateScatterTerm) bool { return t.Value == everyValue }) {
		return strategy
	}
	var terms v1alpha1.UpdateScatterStrategy
	for _, term := range strategy {
		if term.Value != everyValue {
			terms = append(terms, term)
			continue
		}
		for _, value := range values(term.Key, pods, maxValues-len(terms)) {
			terms = append(terms, v1alpha1.UpdateScatterTerm{Key: term.Key, Value: value})
		}
	}
	return terms
}

// values returns the values of the label that more than one pod has, the most common ones first, and most at most.
func values(key string, pods []*corev1.Pod, most int) []string {
	count := map[string]int{}
	for _, pod := range pods {
		if value, found := pod.Labels[key]; found {
			count[value]++
		}
	}
	var found []string
	for value, n := range count {
		if n > 1 {
			found = append(found, value)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return found[:max(0, min(len(found), most))]
}
