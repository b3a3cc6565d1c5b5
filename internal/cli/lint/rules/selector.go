// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// requirements are those of a selector.
type requirements []labels.Requirement

// requirementsOf returns the requirements of a selector, or none if it is nil or invalid.
func requirementsOf(selector *metav1.LabelSelector) requirements {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	all, _ := compiled.Requirements()
	return requirements(all)
}

// match reports whether the labels meet all requirements, apart from those for the open keys, which
// pods may have with any value.
func (r requirements) match(set map[string]string, open sets.Set[string]) bool {
	return len(r.unmet(set, open)) == 0
}

// unmet returns the requirements that the labels do not meet.
func (r requirements) unmet(set map[string]string, open sets.Set[string]) requirements {
	var unmet requirements
	for i := range r {
		if !open.Has(r[i].Key()) && !r[i].Matches(labels.Set(set)) {
			unmet = append(unmet, r[i])
		}
	}
	return unmet
}

// String returns the requirements as in the -l flag of kubectl.
func (r requirements) String() string { return labels.NewSelector().Add(r...).String() }

// possible is what a label may be.
type possible struct {
	// allowed are the only possible values, unless it is nil, and excluded the impossible ones.
	allowed, excluded sets.Set[string]
	present, absent   bool
}

// overlap reports whether a pod can meet all requirements of both selectors.
func overlap(a, b requirements) bool {
	keys := map[string]*possible{}
	for _, r := range append(append(requirements{}, a...), b...) {
		p := keys[r.Key()]
		if p == nil {
			p = &possible{excluded: sets.New[string]()}
			keys[r.Key()] = p
		}
		p.require(r)
	}
	for _, p := range keys {
		if p.present && p.absent || p.allowed != nil && p.allowed.Difference(p.excluded).Len() == 0 {
			return false
		}
	}
	return true
}

func (p *possible) require(r labels.Requirement) {
	values := sets.New(r.ValuesUnsorted()...)
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		if p.allowed != nil {
			values = values.Intersection(p.allowed)
		}
		p.allowed, p.present = values, true
	case selection.NotIn, selection.NotEquals:
		p.excluded = p.excluded.Union(values)
	case selection.Exists:
		p.present = true
	case selection.DoesNotExist:
		p.absent = true
	default:
		// Selectors of objects have no other operator.
	}
}
