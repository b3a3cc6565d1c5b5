// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package until says what a local run waits for, and whether it has come about. An
// expression names pods and one thing that each of them must have:
//
//	pod/NAME condition=TYPE[:STATUS]
//	pod/NAME label=KEY[:VALUE]          label=!KEY
//	pod/NAME annotation=KEY[:VALUE]     annotation=!KEY
//	pod/NAME event=REASON[:TEXT]
//	pod/NAME restarts=N
//
// Conditions, labels and annotations hold while the pod has them; an event holds from when
// it was first seen, and restarts from when there were so many. The package is pure: it is
// told of changes, and owns neither clock nor goroutine.
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

// subject is what an expression is about.
type subject string

const (
	conditions  subject = "condition"
	labels      subject = "label"
	annotations subject = "annotation"
	events      subject = "event"
	restarts    subject = "restarts"
)

// Expression is one thing to wait for. Parse makes it.
type Expression struct {
	text string
	// namespace and pod are globs; an empty namespace is any.
	namespace, pod string
	subject        subject
	// key is the condition's type, the label's or annotation's key, or the event's reason.
	key string
	// value is what the key must have, or what an event's message must contain. It counts
	// where valued is true.
	value  string
	valued bool
	// absent asks for a pod without the key.
	absent bool
	// count is the least number of restarts.
	count int64
}

// String returns the expression as it was written.
func (e Expression) String() string { return e.text }

// Parse reads an expression. The error says which part of it is wrong and what is allowed.
func Parse(text string) (Expression, error) {
	fail := func(err error) (Expression, error) {
		return Expression{}, fmt.Errorf("%q: %w", text, err)
	}
	target, claim, found := strings.Cut(strings.TrimSpace(text), " ")
	if !found {
		return fail(errors.New("must be a pod and what it must have, such as 'pod/web-0 condition=Ready:True'"))
	}
	e := Expression{text: strings.TrimSpace(text)}
	if err := e.parseTarget(target); err != nil {
		return fail(err)
	}
	name, rest, found := strings.Cut(strings.TrimSpace(claim), "=")
	e.subject = subject(name)
	if !found || rest == "" {
		return fail(fmt.Errorf("%q: must be one of %s", claim, forms))
	}
	if err := e.parseClaim(rest); err != nil {
		return fail(err)
	}
	return e, nil
}

const forms = "condition=TYPE:STATUS, label=KEY:VALUE, annotation=KEY:VALUE, event=REASON, restarts=N"

// parseTarget reads pod/NAME or pod/NAMESPACE/NAME.
func (e *Expression) parseTarget(target string) error {
	parts := strings.Split(target, "/")
	switch {
	case parts[0] != "pod" || len(parts) < 2 || len(parts) > 3:
		return fmt.Errorf("%q: must be pod/NAME or pod/NAMESPACE/NAME", target)
	case len(parts) == 3:
		e.namespace, e.pod = parts[1], parts[2]
		if e.namespace == "" {
			return fmt.Errorf("%q: the namespace is empty", target)
		}
	default:
		e.pod = parts[1]
	}
	if e.pod == "" {
		return fmt.Errorf("%q: the name is empty", target)
	}
	for _, glob := range []string{e.namespace, e.pod} {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%q: %q is a malformed glob: *, ? and [a-z] are known", target, glob)
		}
	}
	return nil
}

// parseClaim reads what stands behind the subject.
func (e *Expression) parseClaim(rest string) error {
	switch e.subject {
	case conditions:
		return e.parseCondition(rest)
	case labels, annotations:
		return e.parseKey(rest)
	case events:
		e.key, e.value, e.valued = strings.Cut(rest, ":")
		if e.key == "" {
			return errors.New("event: the reason is empty")
		}
		return nil
	case restarts:
		count, err := strconv.ParseInt(rest, 10, 32)
		if err != nil || count < 0 {
			return fmt.Errorf("restarts: %q: must be a whole number of 0 or more", rest)
		}
		e.count = count
		return nil
	default:
		return fmt.Errorf("%q: must be one of %s", e.subject, forms)
	}
}

// parseCondition reads TYPE:STATUS. Without a status it is True, as for `kubectl wait`.
func (e *Expression) parseCondition(rest string) error {
	e.key, e.value, e.valued = strings.Cut(rest, ":")
	if !e.valued {
		e.value, e.valued = string(corev1.ConditionTrue), true
	}
	if msgs := validation.IsQualifiedName(e.key); len(msgs) > 0 {
		return fmt.Errorf("condition: type %q: %s", e.key, strings.Join(msgs, "; "))
	}
	switch corev1.ConditionStatus(e.value) {
	case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		return nil
	}
	return fmt.Errorf("condition: status %q: must be one of True, False, Unknown", e.value)
}

// parseKey reads KEY, !KEY, KEY:VALUE or KEY=VALUE.
func (e *Expression) parseKey(rest string) error {
	rest, e.absent = strings.CutPrefix(rest, "!")
	e.key = rest
	if at := strings.IndexAny(rest, ":="); at >= 0 {
		e.key, e.value, e.valued = rest[:at], rest[at+1:], true
	}
	if e.absent && e.valued {
		return fmt.Errorf("%s: !%s: !KEY asks for a pod without the key, and takes no value", e.subject, rest)
	}
	if msgs := validation.IsQualifiedName(e.key); len(msgs) > 0 {
		return fmt.Errorf("%s: key %q: %s", e.subject, e.key, strings.Join(msgs, "; "))
	}
	if e.subject != labels {
		return nil
	}
	if msgs := validation.IsValidLabelValue(e.value); len(msgs) > 0 {
		return fmt.Errorf("label: value %q: %s", e.value, strings.Join(msgs, "; "))
	}
	return nil
}

// matches tells whether the expression is about the pod.
func (e Expression) matches(namespace, name string) bool {
	if e.namespace != "" {
		if ok, err := path.Match(e.namespace, namespace); err != nil || !ok {
			return false
		}
	}
	ok, err := path.Match(e.pod, name)
	return err == nil && ok
}
