// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package until

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
)

// Watch evaluates expressions as pods change. It is not safe for concurrent use.
type Watch struct {
	// Any is whether one of the matching pods is enough for each expression.
	Any bool

	expressions []Expression
	pods        map[types.NamespacedName]*podState
	// order is the order in which the pods were first seen. It keeps the output stable.
	order []types.NamespacedName
}

// podState is the state of one pod that expressions refer to.
type podState struct {
	// values are the conditions, labels and annotations.
	values   map[subject]map[string]string
	restarts map[string]int32
	// ended is whether the pod has failed. Nothing updates the marks of such a pod.
	ended bool
	// seen contains the indices of the expressions whose event has occurred.
	seen map[int]bool
	// lastEvent is the most recent event.
	lastEvent *local.PodEvent
}

// Result is the result of one expression.
type Result struct {
	// Expression is the text of the expression.
	Expression string
	// Met is whether at least one pod matches and all matching pods, or one of them if Any is set,
	// meet the requirement.
	Met bool
	// Pods is the number of pods that match.
	Pods int
	// Last describes the pods that do not meet the requirement. It is empty if Met is true.
	Last string
}

// NewWatch returns a watch that starts from the given pods.
func NewWatch(expressions []Expression, pods []*corev1.Pod) *Watch {
	w := &Watch{expressions: expressions, pods: map[types.NamespacedName]*podState{}}
	for _, pod := range pods {
		state := w.pod(pod.Namespace, pod.Name)
		maps.Copy(state.values[labels], pod.Labels)
		maps.Copy(state.values[annotations], pod.Annotations)
		for _, condition := range pod.Status.Conditions {
			state.values[conditions][string(condition.Type)] = string(condition.Status)
		}
		state.ended = pod.Status.Phase == corev1.PodFailed
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			state.restarts[status.Name] = status.RestartCount
		}
	}
	return w
}

// pod returns the state of a pod, which it adds if necessary.
func (w *Watch) pod(namespace, name string) *podState {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if pod, ok := w.pods[key]; ok {
		return pod
	}
	w.pods[key] = &podState{
		values:   map[subject]map[string]string{conditions: {}, labels: {}, annotations: {}},
		restarts: map[string]int32{}, seen: map[int]bool{},
	}
	w.order = append(w.order, key)
	return w.pods[key]
}

// Observe applies a change. The caller passes changes in the order in which they occurred.
func (w *Watch) Observe(change local.Change) {
	pod := w.pod(change.Namespace, change.Pod)
	switch change.Kind {
	case local.KindPod:
		pod.ended = change.Phase == corev1.PodFailed
	case local.KindCondition:
		pod.set(conditions, string(change.Condition.Type), string(change.Condition.Status), change.Removed)
	case local.KindLabel:
		pod.set(labels, change.Key, change.Value, change.Removed)
	case local.KindAnnotation:
		pod.set(annotations, change.Key, change.Value, change.Removed)
	case local.KindContainer:
		pod.restarts[change.Container] = change.Status.RestartCount
	case local.KindEvent:
		pod.lastEvent = change.Event
		for i, e := range w.expressions {
			if e.subject == events && e.key == change.Event.Reason && strings.Contains(change.Event.Message, e.value) {
				pod.seen[i] = true
			}
		}
	}
}

func (p *podState) set(of subject, key, value string, removed bool) {
	p.values[of][key] = value
	if removed {
		delete(p.values[of], key)
	}
}

// Met reports whether there are expressions and all of them are met now.
func (w *Watch) Met() bool {
	for _, result := range w.Results() {
		if !result.Met {
			return false
		}
	}
	return len(w.expressions) > 0
}

// Results returns the result of each expression, in order.
func (w *Watch) Results() []Result {
	results := make([]Result, 0, len(w.expressions))
	for i, e := range w.expressions {
		result := Result{Expression: e.String()}
		var unmet []string
		for _, key := range w.order {
			if !e.matches(key.Namespace, key.Name) {
				continue
			}
			result.Pods++
			if met, last := w.pods[key].evaluate(i, e); !met {
				unmet = append(unmet, fmt.Sprintf("%s has %s", key.Name, last))
			}
		}
		switch {
		case result.Pods == 0:
			result.Last = "no pod matches"
		case len(unmet) == result.Pods, len(unmet) > 0 && !w.Any:
			result.Last = strings.Join(unmet, ", ")
		default:
			result.Met = true
		}
		results = append(results, result)
	}
	return results
}

// evaluate reports whether the pod meets the requirement of the expression with index i. The
// text describes what the pod has instead.
func (p *podState) evaluate(i int, e Expression) (bool, string) {
	met, last := p.has(i, e)
	if met && p.ended && e.isMark() {
		return false, "ended: its marks are those of a container that no longer runs"
	}
	return met, last
}

// isMark reports whether the expression requires a value that a probe sets while its
// container runs.
func (e Expression) isMark() bool {
	switch e.subject {
	case labels, annotations:
		return !e.absent
	case conditions:
		return !slices.ContainsFunc(v1alpha1.NativePodConditionTypes(), func(t corev1.PodConditionType) bool { return e.names(string(t)) })
	default:
		return false
	}
}

// names reports whether the key is that of the expression. The case of condition types does not matter, as in `kubectl wait`.
func (e Expression) names(key string) bool {
	return key == e.key || e.subject == conditions && strings.EqualFold(key, e.key)
}

// has reports whether the pod has what the expression requires, even if the pod has ended.
func (p *podState) has(i int, e Expression) (bool, string) {
	switch e.subject {
	case conditions, labels, annotations:
		return e.met(p.values[e.subject])
	case events:
		if p.lastEvent == nil {
			return p.seen[i], "no events"
		}
		return p.seen[i], fmt.Sprintf("no such event, last was %s: %s", p.lastEvent.Reason, p.lastEvent.Message)
	default:
		sum := int64(0)
		for _, n := range p.restarts {
			sum += int64(n)
		}
		return sum >= e.count, fmt.Sprintf("%d restarts", sum)
	}
}

// met reports whether the values meet the requirement. The text describes the actual value.
func (e Expression) met(values map[string]string) (bool, string) {
	value, found := values[e.key]
	if !found {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if e.names(key) {
				value, found = values[key], true
			}
		}
	}
	switch {
	case e.absent:
		return !found, fmt.Sprintf("%q", value)
	case !found:
		return false, "no such " + string(e.subject)
	case !e.hasValue:
		return true, ""
	}
	return value == e.value, fmt.Sprintf("%q", value)
}
