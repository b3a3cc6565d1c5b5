// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package until parses and evaluates the expressions that `seamark local --until` and `seamark wait` wait for: an Expression for
// pods, and an ObjectExpression for other objects. That for pods selects them and states one requirement that each of them must meet:
//
//	pod/NAME condition=TYPE[:STATUS]    condition=TYPE=STATUS
//	pod/NAME label=KEY[:VALUE]          label=!KEY
//	pod/NAME annotation=KEY[:VALUE]     annotation=!KEY
//	pod/NAME event=REASON[:TEXT]
//	pod/NAME restarts=N
//
// A condition, label or annotation is met while the pod has it. An event is met from its first
// occurrence, restarts are met from when the number is reached. The package is pure: it
// receives changes, and owns no clock and no goroutines.
package until

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// subject is the part of a pod that an expression refers to.
type subject string

const (
	conditions  subject = "condition"
	labels      subject = "label"
	annotations subject = "annotation"
	events      subject = "event"
	restarts    subject = "restarts"
)

// Expression is one parsed expression.
type Expression struct {
	text string
	// namespace and pod are globs. An empty namespace matches all namespaces.
	namespace, pod string
	subject        subject
	// key is a condition type, a label or annotation key, or an event reason.
	key string
	// value is the required value, or a text that the event message must contain. It is used
	// only if hasValue is true.
	value    string
	hasValue bool
	// absent is true if the pod must not have the key.
	absent bool
	// count is the minimum number of restarts.
	count int64
}

// String returns the expression as it was written.
func (e Expression) String() string { return e.text }

// Parse parses an expression. The error names the invalid part and what is allowed.
func Parse(text string) (Expression, error) {
	fail := func(err error) (Expression, error) {
		return Expression{}, fmt.Errorf("%q is invalid: %w", text, err)
	}
	target, requirement, found := strings.Cut(strings.TrimSpace(text), " ")
	if !found {
		return fail(errors.New("must be a pod and a requirement, such as 'pod/web-0 condition=Ready:True'"))
	}
	e := Expression{text: strings.TrimSpace(text)}
	if err := e.parseTarget(target); err != nil {
		return fail(err)
	}
	if err := e.parseRequirement(strings.TrimSpace(requirement)); err != nil {
		return fail(err)
	}
	return e, nil
}

// ParseRequirement parses an expression without a pod, such as label=role=primary, which selects
// all pods.
func ParseRequirement(text string) (Expression, error) {
	e := Expression{text: strings.TrimSpace(text), pod: "*"}
	if err := e.parseRequirement(e.text); err != nil {
		return Expression{}, fmt.Errorf("%q is invalid: %w", text, err)
	}
	return e, nil
}

// IsEvent reports whether the expression refers to events.
func (e Expression) IsEvent() bool { return e.subject == events }

const forms = "condition=TYPE:STATUS, label=KEY:VALUE, annotation=KEY:VALUE, event=REASON, restarts=N"

// parseTarget parses pod/NAME or pod/NAMESPACE/NAME.
func (e *Expression) parseTarget(target string) error {
	parts := strings.Split(target, "/")
	switch {
	case parts[0] != "pod" || len(parts) < 2 || len(parts) > 3:
		return fmt.Errorf("%q must be pod/NAME or pod/NAMESPACE/NAME", target)
	case len(parts) == 3:
		e.namespace, e.pod = parts[1], parts[2]
		if e.namespace == "" {
			return fmt.Errorf("the namespace in %q must not be empty", target)
		}
	default:
		e.pod = parts[1]
	}
	if e.pod == "" {
		return fmt.Errorf("the name in %q must not be empty", target)
	}
	for _, glob := range []string{e.namespace, e.pod} {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("glob %q is malformed: it may contain *, ? and ranges such as [a-z]", glob)
		}
	}
	return nil
}

// parseRequirement parses SUBJECT=REST.
func (e *Expression) parseRequirement(requirement string) error {
	name, rest, found := strings.Cut(requirement, "=")
	if e.subject = subject(name); !found || rest == "" {
		return fmt.Errorf("requirement %q must be one of %s", requirement, forms)
	}
	switch e.subject {
	case conditions:
		return e.parseCondition(rest)
	case labels, annotations:
		return e.parseKey(rest)
	case events:
		e.key, e.value, e.hasValue = strings.Cut(rest, ":")
		if e.key == "" {
			return errors.New("event reason must not be empty")
		}
		return nil
	case restarts:
		count, err := strconv.ParseInt(rest, 10, 32)
		if err != nil || count < 0 {
			return fmt.Errorf("restarts %q must be an integer of 0 or more", rest)
		}
		e.count = count
		return nil
	default:
		return fmt.Errorf("requirement %q must be one of %s", e.subject, forms)
	}
}

// parseCondition parses TYPE, TYPE:STATUS or TYPE=STATUS. The default status is True, and case does not matter, as in
// `kubectl wait`.
func (e *Expression) parseCondition(rest string) error {
	e.key, e.value, e.hasValue = rest, string(corev1.ConditionTrue), true
	if at := strings.IndexAny(rest, ":="); at >= 0 {
		e.key, e.value = rest[:at], rest[at+1:]
	}
	if msgs := validation.IsQualifiedName(e.key); len(msgs) > 0 {
		return fmt.Errorf("condition type %q: %s", e.key, strings.Join(msgs, "; "))
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		if strings.EqualFold(e.value, string(status)) {
			e.value = string(status)
			return nil
		}
	}
	return fmt.Errorf("condition status %q must be one of True, False, Unknown", e.value)
}

// parseKey parses KEY, !KEY, KEY:VALUE or KEY=VALUE.
func (e *Expression) parseKey(rest string) error {
	rest, e.absent = strings.CutPrefix(rest, "!")
	e.key = rest
	if at := strings.IndexAny(rest, ":="); at >= 0 {
		e.key, e.value, e.hasValue = rest[:at], rest[at+1:], true
	}
	if e.absent && e.hasValue {
		return fmt.Errorf("%s !%s must not have a value: !KEY means that the key is absent", e.subject, rest)
	}
	if msgs := validation.IsQualifiedName(e.key); len(msgs) > 0 {
		return fmt.Errorf("%s key %q: %s", e.subject, e.key, strings.Join(msgs, "; "))
	}
	if e.subject != labels {
		return nil
	}
	if msgs := validation.IsValidLabelValue(e.value); len(msgs) > 0 {
		return fmt.Errorf("label value %q: %s", e.value, strings.Join(msgs, "; "))
	}
	return nil
}

// matches reports whether the expression selects the pod.
func (e Expression) matches(namespace, name string) bool {
	if e.namespace != "" {
		if ok, err := path.Match(e.namespace, namespace); err != nil || !ok {
			return false
		}
	}
	ok, err := path.Match(e.pod, name)
	return err == nil && ok
}
