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
	// condition is the expression that is true for the pods that the set selects.
	condition string
	inherits  bool
}

// group returns the entry of several sets.
func (s Server) group(name string, failure admissionregistrationv1.FailurePolicyType, members []member) admissionregistrationv1.MutatingWebhook {
	namespaces, conditions, inherits := sets.New[string](), make([]string, 0, len(members)), false
	for _, m := range members {
		namespaces.Insert(m.namespaces...)
		conditions = append(conditions, m.condition)
		inherits = inherits || m.inherits
	}
	entry := s.entry(name+groupSuffix, "/inject/group/"+name, failure, inherits)
	entry.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: sets.List(namespaces),
	}}}
	entry.ObjectSelector = &metav1.LabelSelector{}
	entry.MatchConditions = append(entry.MatchConditions, admissionregistrationv1.MatchCondition{
		Name: "selected", Expression: strings.Join(conditions, " ||\n"),
	})
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
	condition := "(request.namespace in " + list(namespaces)
	for _, key := range slices.Sorted(maps.Keys(targets.Selector.MatchLabels)) {
		condition += " && " + requirement(key, metav1.LabelSelectorOpIn, []string{targets.Selector.MatchLabels[key]})
	}
	for _, each := range targets.Selector.MatchExpressions {
		condition += " && " + requirement(each.Key, each.Operator, each.Values)
	}
	return member{namespaces: namespaces, condition: condition + ")", inherits: set.Status.InForce.Inherits}, true
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

// requirement returns the expression for one label of a pod.
func requirement(key string, operator metav1.LabelSelectorOperator, values []string) string {
	label := "object.metadata.?labels[?" + strconv.Quote(key) + "]"
	is := label + ".hasValue()"
	if operator == metav1.LabelSelectorOpIn || operator == metav1.LabelSelectorOpNotIn {
		is = "(" + is + " && " + label + ".value() in " + list(values) + ")"
	}
	if operator == metav1.LabelSelectorOpNotIn || operator == metav1.LabelSelectorOpDoesNotExist {
		return "!" + is
	}
	return is
}

// list returns a list of texts as an expression.
func list(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}
