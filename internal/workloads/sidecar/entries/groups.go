// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

// groupSuffix is the end of the names of entries of several sets.
const groupSuffix = ".sidecarsetgroups.seamark.dev"

// member is a set in a group.
type member struct {
	// namespaces are the names of the namespaces that the set is bound to.
	namespaces []string
	// row is what the set requires, as a list of lists of texts: see selected.
	row      string
	inherits bool
}

// The first text of a requirement.
const (
	opNamespace = "n"
	opIn        = "i"
	opNotIn     = "x"
	opExists    = "e"
	opNotExists = "d"
)

// value marks the values of a requirement: neither operators nor keys begin with it.
const value = "="

// selected returns the expression that is true for the pods that one of the sets selects. The sets are data: API
// servers compile 128 of them as conditions in 174 ms, and as a list of rows in 9 ms. A row is a list of requirements,
// and a requirement a list of an operator, a key and values.
func selected(members []member) string {
	rows := make([]string, 0, len(members))
	for i := range members {
		rows = append(rows, members[i].row)
	}
	const label = `object.metadata.?labels[?r[1]]`
	const isOneOf = `(` + label + `.hasValue() && ("` + value + `" + ` + label + `.orValue("")) in r)`
	return "[" + strings.Join(rows, ",\n") + "].exists(s, s.all(r,\n" +
		`r[0] == "` + opNamespace + `" ? ("` + value + `" + request.namespace) in r :` + "\n" +
		`r[0] == "` + opIn + `" ? ` + isOneOf + " :\n" +
		`r[0] == "` + opNotIn + `" ? !` + isOneOf + " :\n" +
		`r[0] == "` + opExists + `" ? ` + label + ".hasValue() : !" + label + ".hasValue()))"
}

// group returns the entry of several sets.
func (s Server) group(name string, failure admissionregistrationv1.FailurePolicyType, members []member) admissionregistrationv1.MutatingWebhook {
	namespaces, inherits := sets.New[string](), false
	for _, m := range members {
		namespaces.Insert(m.namespaces...)
		inherits = inherits || m.inherits
	}
	entry := s.entry(name+groupSuffix, "/inject/group/"+name, failure, inherits)
	entry.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: sets.List(namespaces),
	}}}
	entry.ObjectSelector = &metav1.LabelSelector{}
	entry.MatchConditions = append(entry.MatchConditions, admissionregistrationv1.MatchCondition{Name: "selected", Expression: selected(members)})
	return entry
}

// newMember returns the set as a member of a group, or false if it is not bound to named namespaces: the API
// server does not show conditions the labels of a namespace.
func (s Server) newMember(set *v1alpha1.SidecarSet) (member, bool) {
	targets := set.Status.InForce.Targets()
	namespaces, ok := Named(targets)
	namespaces = slices.DeleteFunc(namespaces, func(name string) bool { return slices.Contains(s.Excluded(), name) })
	if !ok || len(namespaces) == 0 {
		return member{}, false
	}
	row := []string{requirement(opNamespace, "", namespaces)}
	for _, key := range slices.Sorted(maps.Keys(targets.Selector.MatchLabels)) {
		row = append(row, requirement(opIn, key, []string{targets.Selector.MatchLabels[key]}))
	}
	operators := map[metav1.LabelSelectorOperator]string{
		metav1.LabelSelectorOpIn: opIn, metav1.LabelSelectorOpNotIn: opNotIn,
		metav1.LabelSelectorOpExists: opExists, metav1.LabelSelectorOpDoesNotExist: opNotExists,
	}
	for _, each := range targets.Selector.MatchExpressions {
		row = append(row, requirement(operators[each.Operator], each.Key, each.Values))
	}
	return member{namespaces: namespaces, row: "[" + strings.Join(row, ",") + "]", inherits: set.Status.InForce.Inherits}, true
}

// Named returns the names of the namespaces that the set is bound to, sorted, or false if it selects namespaces
// by other labels than the name.
func Named(spec *v1alpha1.SidecarSetSpec) ([]string, bool) {
	var names sets.Set[string]
	permit := func(values ...string) {
		if allowed := sets.New(values...); names == nil {
			names = allowed
		} else {
			names = names.Intersection(allowed)
		}
	}
	for _, selector := range overlap.Namespaces(spec) {
		for key, value := range selector.MatchLabels {
			if key != corev1.LabelMetadataName {
				return nil, false
			}
			permit(value)
		}
		for _, each := range selector.MatchExpressions {
			if each.Key != corev1.LabelMetadataName || each.Operator != metav1.LabelSelectorOpIn {
				return nil, false
			}
			permit(each.Values...)
		}
	}
	return sets.List(names), names != nil
}

// requirement returns a requirement as an expression.
func requirement(operator, key string, values []string) string {
	texts := []string{strconv.Quote(operator), strconv.Quote(key)}
	for _, each := range values {
		texts = append(texts, strconv.Quote(value+each))
	}
	return "[" + strings.Join(texts, ",") + "]"
}
