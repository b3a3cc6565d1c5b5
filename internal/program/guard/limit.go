// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxValue bounds the annotation in errors and caches. Valid ones are shorter.
const maxValue = 32

// MaxDuration returns how long the guard protects a pod at most, 0 if it has no maximum. The error is about an invalid one, which the
// policy seamark-guard-labels refuses.
func MaxDuration(budget *policyv1.PodDisruptionBudget) (time.Duration, error) {
	const shortest, longest = time.Minute, 720 * time.Hour
	value, set := budget.Annotations[v1alpha1.GuardMaxDurationKey]
	if !set {
		return 0, nil
	}
	parsed, err := time.ParseDuration(value)
	valid := err == nil && regexp.MustCompile(`^([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$`).MatchString(value)
	if !valid || parsed < shortest || parsed > longest {
		return 0, fmt.Errorf("metadata.annotations[%s]: %q is invalid: must be hours, minutes and seconds such as 2h or 1h30m, from 1m to 720h",
			v1alpha1.GuardMaxDurationKey, text.Truncate(value, maxValue))
	}
	return parsed, nil
}

// Limits returns the guards of a namespace for Decide. They are none if the namespace has more than count: others may protect a pod
// for ever.
func Limits(budgets []*policyv1.PodDisruptionBudget) Guards {
	if len(budgets) > Most {
		return nil
	}
	return New(budgets)
}

// Limit is when the guards of a pod, which all have a maximum, release it.
type Limit struct {
	// Guard is the name of the last one, Since is since when it protects the pod, and Max is its maximum.
	Guard string
	Since time.Time
	Max   time.Duration
}

// Decision is what the manager does about the label seamark.dev/guard-exempt of a pod.
type Decision struct {
	// Limit is zero if no guard protects the pod, or one for ever.
	Limit Limit
	// Wait is the time until the limit.
	Wait time.Duration
	// Release is whether the pod gets the label. Hold is whether it loses the label that the manager has set.
	Release, Hold bool
}

// Decide returns the decision about a pod that is not ending. Labels that others have set, or that a probe may set, stay as they are.
func (g Guards) Decide(pod *corev1.Pod, transitions []Transition, now time.Time) Decision {
	value, exempt := pod.Labels[v1alpha1.GuardExemptKey]
	released := exempt && value == v1alpha1.GuardExemptMaxDuration
	byProbe := func(t Transition) bool { return slices.Contains(t.Labels, v1alpha1.GuardExemptKey) }
	if exempt && !released || slices.ContainsFunc(transitions, byProbe) {
		return Decision{}
	}
	limit, limited := g.limit(pod, transitions)
	if !limited {
		return Decision{Hold: released}
	}
	if wait := limit.Since.Add(limit.Max).Sub(now); wait > 0 {
		return Decision{Limit: limit, Wait: wait, Hold: released}
	}
	return Decision{Limit: limit, Release: !released}
}

// limit returns the latest limit of the guards that protect the pod, or would do so without the label, and whether all have one.
func (g Guards) limit(pod *corev1.Pod, transitions []Transition) (last Limit, limited bool) {
	if len(g) == 0 {
		return Limit{}, false
	}
	guarded := *pod
	guarded.Labels = maps.Clone(pod.Labels)
	delete(guarded.Labels, v1alpha1.GuardExemptKey)
	if !protected(&guarded) {
		return Limit{}, false
	}
	for i := range g {
		if !g[i].selector.Matches(labels.Set(guarded.Labels)) {
			continue
		}
		each := Limit{g[i].name, g[i].since(pod, transitions), g[i].max}
		if each.Max == 0 || each.Since.IsZero() {
			return Limit{}, false
		}
		if !limited || each.Since.Add(each.Max).After(last.Since.Add(last.Max)) {
			last, limited = each, true
		}
	}
	return last, limited
}
