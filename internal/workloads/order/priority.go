// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// WaitBound is the longest time that an update waits for the label of a pod that its priority
	// depends on, after the pod became ready or a marker does not know the label.
	WaitBound = 30 * time.Second
	// WaitLimit is the longest time that an update waits for labels after it has begun, or after the last
	// pod has been replaced or updated in place: a pod may become ready again and again.
	WaitLimit = 2 * time.Minute
	// startBound is the time after the creation of a pod in which it counts when the pod becomes ready.
	startBound = 10 * time.Minute
)

// priorities is a strategy with parsed selectors.
type priorities struct {
	keys    []string
	weights []weight
}

type weight struct {
	selector labels.Selector
	weight   int64
}

// newPriorities parses the strategy. Weights take precedence over keys, as in OpenKruise; the CRD
// rejects both together. A selector that cannot be parsed matches nothing; the CRD rejects it.
func newPriorities(strategy *pub.UpdatePriorityStrategy) *priorities {
	p := &priorities{}
	if strategy == nil {
		return p
	}
	for i := range strategy.WeightPriority {
		term := &strategy.WeightPriority[i]
		selector, err := metav1.LabelSelectorAsSelector(&term.MatchSelector)
		if err != nil {
			continue
		}
		p.weights = append(p.weights, weight{selector: selector, weight: int64(term.Weight)})
	}
	if len(strategy.WeightPriority) == 0 {
		for _, term := range strategy.OrderPriority {
			p.keys = append(p.keys, term.OrderedKey)
		}
	}
	return p
}

func (p *priorities) priorityOf(pod *corev1.Pod) Priority {
	for level, k := range p.keys {
		if value, ok := pod.Labels[k]; ok {
			return Priority{level: level, value: trailingInteger(value)}
		}
	}
	result := Priority{level: len(p.keys)}
	for _, w := range p.weights {
		if w.selector.Matches(labels.Set(pod.Labels)) {
			result.value += w.weight
		}
	}
	return result
}

// trailingInteger returns the integer at the end of the value, zero if there is none or if it exceeds
// an int64.
func trailingInteger(value string) int64 {
	digits := value[len(strings.TrimRight(value, "0123456789")):]
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Keys returns the label keys that the strategy reads.
func Keys(strategy *pub.UpdatePriorityStrategy) []string {
	var result []string
	if strategy == nil {
		return nil
	}
	for i := range strategy.WeightPriority {
		selector := &strategy.WeightPriority[i].MatchSelector
		for k := range selector.MatchLabels {
			result = append(result, k)
		}
		for _, requirement := range selector.MatchExpressions {
			result = append(result, requirement.Key)
		}
	}
	for _, term := range strategy.OrderPriority {
		result = append(result, term.OrderedKey)
	}
	return result
}

// WaitOptions are what Wait depends on besides the pods.
type WaitOptions struct {
	// Strategy is that of the set. Without one, no label is waited for.
	Strategy *pub.UpdatePriorityStrategy
	// Markers is what is known about the markers that select pods of the set.
	Markers planning.Markers
	// Begun is when the update began, zero if that is not known: WaitLimit then does not apply.
	Begun time.Time
	// All are all pods of the set.
	All []*corev1.Pod
	// Now is the time.
	Now time.Time
}

// Wait returns for how long the update must not start with another pod, zero or less if it may: one of
// the pods has none of the labels that its priority depends on, and a marker is about to write one. That
// is so for WaitBound after the pod became ready, and for WaitBound after a condition of a marker
// became Unknown, but not after WaitLimit. The pods are those that must still be updated and whose
// update has not started. Pods that are not ready are not waited for: they are updated first, whatever
// their labels are.
func Wait(pods []*corev1.Pod, opts WaitOptions) time.Duration {
	marked, read := false, Keys(opts.Strategy)
	for _, k := range read {
		marked = marked || opts.Markers.Labels.Has(k)
	}
	if !marked {
		return 0
	}
	var wait time.Duration
	for _, pod := range pods {
		if planning.Ready(pod) && !hasAny(pod.Labels, read) {
			wait = max(wait, since(pod, opts.Markers).Add(WaitBound).Sub(opts.Now))
		}
	}
	if wait > 0 && !opts.Begun.IsZero() {
		wait = min(wait, progressed(&opts).Add(WaitLimit).Sub(opts.Now))
	}
	return wait
}

// progressed returns when the update last made progress: when it began, or when the last pod was
// created, changed its state, or became ready after its creation. It does not follow a pod whose
// readiness toggles.
func progressed(opts *WaitOptions) time.Time {
	last := opts.Begun
	for _, pod := range opts.All {
		created := pod.CreationTimestamp.Time
		times := []time.Time{created, lifecycle.Timestamp(pod).Time}
		if ready := planning.Condition(pod, corev1.PodReady); ready != nil && ready.LastTransitionTime.Time.Before(created.Add(startBound)) {
			times = append(times, ready.LastTransitionTime.Time)
		}
		for _, t := range times {
			if t.After(last) {
				last = t
			}
		}
	}
	return last
}

func hasAny(set map[string]string, wanted []string) bool {
	for _, k := range wanted {
		if _, ok := set[k]; ok {
			return true
		}
	}
	return false
}

// since returns from when on a label of the ready pod is waited for.
func since(pod *corev1.Pod, markers planning.Markers) time.Time {
	start := planning.Condition(pod, corev1.PodReady).LastTransitionTime.Time
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Status == corev1.ConditionUnknown && markers.Conditions.Has(c.Type) &&
			c.LastTransitionTime.After(start) {
			start = c.LastTransitionTime.Time
		}
	}
	return start
}
