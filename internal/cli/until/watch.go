// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package until

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/local"
)

// Watch follows pods and judges expressions on them. It is not safe for concurrent use.
type Watch struct {
	expressions []Expression
	pods        map[types.NamespacedName]*facts
	// order is the pods as they came, so that reports read the same in every run.
	order []types.NamespacedName
}

// facts are what expressions ask of one pod.
type facts struct {
	conditions, labels, annotations map[string]string
	restarts                        map[string]int32
	// seen marks the expressions, by their place, whose event has come.
	seen map[int]bool
	// last is the newest event.
	last *local.Event
}

// Verdict is what is known of one expression.
type Verdict struct {
	// Expression is as it was written.
	Expression string
	// Held is whether at least one pod matches, and all that do have what is asked for.
	Held bool
	// Last says of each pod that lacks it what it has instead. Empty where Held is true.
	Last string
}

// NewWatch returns a watch that knows the pods as they stand before anything happens.
func NewWatch(expressions []Expression, pods []local.PodView) *Watch {
	w := &Watch{expressions: expressions, pods: map[types.NamespacedName]*facts{}}
	for _, view := range pods {
		f := w.facts(view.Pod.Namespace, view.Pod.Name)
		for key, value := range view.Pod.Labels {
			f.labels[key] = value
		}
		for key, value := range view.Pod.Annotations {
			f.annotations[key] = value
		}
		for _, condition := range view.Pod.Status.Conditions {
			f.conditions[string(condition.Type)] = string(condition.Status)
		}
	}
	return w
}

// facts returns what is known of a pod, which may be new.
func (w *Watch) facts(namespace, name string) *facts {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if f, ok := w.pods[key]; ok {
		return f
	}
	f := &facts{
		conditions: map[string]string{}, labels: map[string]string{}, annotations: map[string]string{},
		restarts: map[string]int32{}, seen: map[int]bool{},
	}
	w.pods[key] = f
	w.order = append(w.order, key)
	return f
}

// Observe takes in a change. Changes are given in the order in which they happened.
func (w *Watch) Observe(change local.Change) {
	f := w.facts(change.Namespace, change.Pod)
	switch change.Kind {
	case local.KindCondition:
		put(f.conditions, string(change.Condition.Type), string(change.Condition.Status), change.Removed)
	case local.KindLabel:
		put(f.labels, change.Key, change.Value, change.Removed)
	case local.KindAnnotation:
		put(f.annotations, change.Key, change.Value, change.Removed)
	case local.KindContainer:
		f.restarts[change.Container] = change.Status.RestartCount
	case local.KindEvent:
		f.last = change.Event
		for i, e := range w.expressions {
			if e.subject == events && e.key == change.Event.Reason && strings.Contains(change.Event.Message, e.value) {
				f.seen[i] = true
			}
		}
	}
}

func put(values map[string]string, key, value string, removed bool) {
	if removed {
		delete(values, key)
		return
	}
	values[key] = value
}

// Held tells whether there are expressions and all hold at this moment.
func (w *Watch) Held() bool {
	for _, verdict := range w.Verdicts() {
		if !verdict.Held {
			return false
		}
	}
	return len(w.expressions) > 0
}

// Verdicts returns what is known of each expression, in their order.
func (w *Watch) Verdicts() []Verdict {
	verdicts := make([]Verdict, 0, len(w.expressions))
	for i, e := range w.expressions {
		verdict := Verdict{Expression: e.String()}
		var lacking []string
		matched := false
		for _, key := range w.order {
			if !e.matches(key.Namespace, key.Name) {
				continue
			}
			matched = true
			if has, last := w.pods[key].judge(i, e); !has {
				lacking = append(lacking, fmt.Sprintf("%s has %s", key.Name, last))
			}
		}
		switch {
		case !matched:
			verdict.Last = "no pod matches"
		case len(lacking) > 0:
			verdict.Last = strings.Join(lacking, ", ")
		default:
			verdict.Held = true
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// judge tells whether the pod has what the expression in place i asks for, and if not,
// what it has.
func (f *facts) judge(i int, e Expression) (bool, string) {
	switch e.subject {
	case conditions:
		return e.holds(f.conditions, "no such condition")
	case labels:
		return e.holds(f.labels, "no such label")
	case annotations:
		return e.holds(f.annotations, "no such annotation")
	case events:
		if f.last == nil {
			return f.seen[i], "no event"
		}
		return f.seen[i], fmt.Sprintf("last event %s: %s", f.last.Reason, f.last.Message)
	default:
		sum := int64(0)
		for _, n := range f.restarts {
			sum += int64(n)
		}
		return sum >= e.count, fmt.Sprintf("%d restarts", sum)
	}
}

// holds tells whether the values are as the expression asks, and what they are.
func (e Expression) holds(values map[string]string, none string) (bool, string) {
	value, found := values[e.key]
	switch {
	case e.absent:
		return !found, fmt.Sprintf("%q", value)
	case !found:
		return false, none
	case !e.valued:
		return true, ""
	}
	return value == e.value, fmt.Sprintf("%q", value)
}
