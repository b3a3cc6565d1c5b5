// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package until

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
)

// ObjectExpression is a parsed requirement for an object that is not a pod. Use ParseObject to create one. It is not safe for
// concurrent use.
type ObjectExpression struct {
	// condition is the requirement for a condition. Only its text is set if the expression has another form.
	condition Expression
	// exists is whether the object must exist, for create and delete. It is nil for other forms.
	exists *bool
	// path is that of a field, nil for other forms. value is what it must have. It is empty if any value is enough.
	path  *jsonpath.JSONPath
	value string
}

const objectForms = "condition=TYPE[=STATUS], jsonpath={PATH}[=VALUE], create, delete"

// ParseObject parses an expression. The error names the invalid part and what is allowed.
func ParseObject(text string) (*ObjectExpression, error) {
	text = strings.TrimSpace(text)
	e := &ObjectExpression{condition: Expression{text: text}}
	form, rest, _ := strings.Cut(text, "=")
	var err error
	switch form {
	case "create", "delete":
		e.exists = new(form == "create")
		if rest != "" {
			err = fmt.Errorf("%s must not have a value", form)
		}
	case string(conditions):
		err = e.condition.parseRequirement(text)
	case "jsonpath":
		err = e.parsePath(rest)
	default:
		err = errors.New("must be one of " + objectForms)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is invalid: %w", text, err)
	}
	return e, nil
}

// parsePath parses {PATH} or {PATH}=VALUE. The braces and the first dot may be omitted, as in `kubectl wait`, unless the path has an
// equals sign.
func (e *ObjectExpression) parsePath(text string) error {
	parts := regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}=]+))(=.+)?$`).FindStringSubmatch(text)
	if parts == nil {
		return fmt.Errorf("jsonpath %q must be {PATH} or {PATH}=VALUE, such as {.status.readyReplicas}=3", text)
	}
	e.path, e.value = jsonpath.New("for").AllowMissingKeys(true), strings.Trim(strings.TrimPrefix(parts[3], "="), `'"`)
	if err := e.path.Parse("{." + parts[1] + parts[2] + "}"); err != nil {
		return fmt.Errorf("jsonpath %q: %w", text, err)
	}
	return nil
}

// Exists returns whether the expression requires that the object exists, or that it does not. It is nil for other forms.
func (e *ObjectExpression) Exists() *bool { return e.exists }

// Result evaluates the expression for an object, nil if it does not exist. Conditions and fields count once the controller has
// handled the last change of the specification. Stalled is why an expression for the condition Ready is not met without a change by a
// user: the object is Stalled. It is empty otherwise.
func (e *ObjectExpression) Result(object *unstructured.Unstructured) (v Result, stalled string) {
	v.Expression = e.condition.text
	v.Met, v.Last = e.evaluate(object)
	if v.Met {
		v.Last = ""
	}
	ready := strings.EqualFold(e.condition.key, v1alpha1.ConditionReady) && e.condition.value == string(corev1.ConditionTrue)
	if ready && !v.Met && object != nil && notObserved(object) == "" {
		stalled = conditionsOf(object).Message(v1alpha1.ConditionStalled)
	}
	return v, stalled
}

// evaluate reports whether the object meets the expression. The text describes what it has instead.
func (e *ObjectExpression) evaluate(object *unstructured.Unstructured) (met bool, last string) {
	switch {
	case object == nil:
		return e.exists != nil && !*e.exists, "it does not exist"
	case e.exists != nil:
		last = "it exists"
		if object.GetDeletionTimestamp() != nil {
			last += ", and waits for its finalizers: " + text.List(object.GetFinalizers(), text.MaxNames)
		}
		return *e.exists, last
	case notObserved(object) != "":
		return false, notObserved(object)
	case e.path != nil:
		return e.field(object)
	}
	return e.conditionIn(conditionsOf(object))
}

// notObserved says that the controller has not handled the last change of the object. It is empty if it has, or if that is not
// known: the status of OpenKruise's jobs has no observedGeneration.
func notObserved(object *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	observed, found, _ := unstructured.NestedInt64(status, "observedGeneration")
	kind := kinds.ByGroupKind(object.GroupVersionKind().GroupKind())
	if !found && len(status) > 0 && kind != nil && kind.Role == kinds.Job {
		return ""
	}
	return rollout.Unobserved(object.GetGeneration(), observed)
}

// field reports whether the object has a field with the value. The text describes what it has instead.
func (e *ObjectExpression) field(object *unstructured.Unstructured) (met bool, last string) {
	lists, err := e.path.FindResults(object.Object)
	if err != nil {
		return false, err.Error()
	}
	values := slices.Concat(lists...)
	switch {
	case len(values) == 0:
		return false, "no such field"
	case e.value == "":
		return true, ""
	case len(values) > 1:
		return false, fmt.Sprintf("%d fields", len(values))
	}
	switch value := values[0].Interface().(type) {
	case map[string]any, []any:
		return false, "an object or a list"
	default:
		has := strings.TrimSpace(fmt.Sprint(value))
		return has == e.value, fmt.Sprintf("%q", has)
	}
}

// conditionIn reports whether the condition has the status. The text describes what it has instead.
func (e *ObjectExpression) conditionIn(all planning.Conditions) (met bool, last string) {
	i := slices.IndexFunc(all, func(c planning.SetCondition) bool { return strings.EqualFold(c.Type, e.condition.key) })
	if i < 0 {
		var types []string
		for _, each := range all {
			types = append(types, each.Type+"="+string(each.Status))
		}
		if len(types) == 0 {
			return false, "no conditions"
		}
		return false, "no such condition; there are " + text.List(types, text.MaxNames)
	}
	c := all[i]
	last = string(c.Status)
	for _, more := range []string{c.Reason, c.Message} {
		if more != "" {
			last += ": " + more
		}
	}
	return strings.EqualFold(string(c.Status), e.condition.value), last
}

// conditionsOf returns the conditions of the object.
func conditionsOf(object *unstructured.Unstructured) (all planning.Conditions) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range list {
		fields, _ := each.(map[string]any)
		text := func(field string) string {
			value, _, _ := unstructured.NestedString(fields, field)
			return value
		}
		all = append(all, planning.SetCondition{
			Type: text("type"), Status: corev1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		})
	}
	return all
}
