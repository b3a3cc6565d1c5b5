// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	reasonApplied = "Applied"
	reasonRefused = "WriteRefused"
	reasonLimited = "WritesLimited"

	// startup is the time after the start in which a stored problem without a known pod is
	// kept: the controller that writes the marks has yet to find the problem again.
	startup = time.Minute
)

// applied returns the condition about pods that do not have all marks of the marker.
func (r *Reconciler) applied(marker *v1alpha1.PodProbeMarker) finding {
	if r.grace(marker) > 0 {
		return finding{Condition: *meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionMarksApplied)}
	}
	return applied(r.Problems.Of(client.ObjectKeyFromObject(marker)))
}

// grace returns how long the problem that an earlier manager stored is kept although no pod has it.
func (r *Reconciler) grace(marker *v1alpha1.PodProbeMarker) time.Duration {
	left := r.started().Add(startup).Sub(r.Now())
	key := client.ObjectKeyFromObject(marker)
	last, _ := r.checks.Get(key)
	if left <= 0 || !meta.IsStatusConditionFalse(marker.Status.Conditions, v1alpha1.ConditionMarksApplied) ||
		last.causes[v1alpha1.ConditionMarksApplied] != "" || len(r.Problems.Of(key)) > 0 {
		return 0
	}
	return left
}

// applied returns the condition, given the problems by name of the pod.
func applied(problems map[string]controller.MarkProblem) finding {
	if len(problems) == 0 {
		none := fine(v1alpha1.ConditionMarksApplied, reasonApplied, "All marks are written.")
		none.cause = "none" // Unlike a stored problem, it is the result of a check.
		return none
	}
	limited := make(map[controller.Limit]pods)
	refused := make(map[string]pods)
	for name, problem := range problems {
		if problem.Limited != "" {
			limited[problem.Limited] = limited[problem.Limited].with(name)
		}
		for probe := range problem.Refused {
			refused[probe] = refused[probe].with(name)
		}
	}
	var cause, sentences []string
	for _, probe := range slices.Sorted(maps.Keys(refused)) {
		p := refused[probe]
		cause = append(cause, "refused "+probe)
		sentences = append(sentences, fmt.Sprintf("Probe %q: the API server refuses its marks (pods: %d, such as %s): %s.",
			probe, p.count, p.example, text.Truncate(problems[p.example].Refused[probe], maxRefusal)))
	}
	reason := reasonRefused
	if len(refused) == 0 {
		reason = reasonLimited
	}
	for _, limit := range slices.Sorted(maps.Keys(limited)) {
		p := limited[limit]
		cause = append(cause, "limited by "+string(limit))
		sentences = append(sentences, fmt.Sprintf("Writes of marks are limited (pods: %d, such as %s), because the marks %s: %s.",
			p.count, p.example, limit.Cause(), advice(limit)))
	}
	return wrong(v1alpha1.ConditionMarksApplied, reason, fmt.Sprint(cause), text.Truncate(strings.Join(sentences, " "), maxMessage))
}

// advice says how to find the cause of the limit.
func advice(limit controller.Limit) string {
	if limit == controller.LimitRate {
		return "check whether a probe changes its state as often, or whether another client changes the same keys"
	}
	return "check whether another marker or client changes the same keys, or labels that select the pods"
}
