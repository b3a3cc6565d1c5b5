// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/shell"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/workloads/order"
)

type marker struct {
	*object
	spec         v1alpha1.PodProbeMarker
	requirements requirements
}

func probePath(i int) string { return fmt.Sprintf("spec.probes[%d]", i) }

// policyPath returns the path of a label or annotation of a policy.
func policyPath(probe, policy int, kind, key string) string {
	return fmt.Sprintf("%s.markerPolicy[%d].%s[%s]", probePath(probe), policy, kind, key)
}

// checkMarker checks a marker alone. accepted is whether the API server accepts it, apart from labels
// of the selector.
func (c *checker) checkMarker(m *marker, accepted bool) {
	inSelector := c.checkOwnSelector(m)
	if accepted && !inSelector {
		if _, err := plan.Compile(&m.spec); err != nil {
			path, message, _ := strings.Cut(err.Error(), ": ")
			rule, advice := ruleProviderAnnotation, "use another key"
			switch {
			case errors.Is(err, plan.ErrExclusiveValue):
				rule, advice = ruleExclusiveValue, "use another value, or remove the key from the other state"
			case errors.Is(err, plan.ErrTicketLabel):
				rule = ruleTicketLabel
			}
			c.add(rule, m.object, path, message, advice)
		}
	}
	if err := plan.CheckAnnotations(&m.spec); err != nil {
		c.add(ruleAnnotation, m.object, "metadata.annotations["+v1alpha1.MessageUpdatesAnnotationKey+"]", err.Error(), "correct or remove it")
	}
	for i := range m.spec.Spec.Probes {
		probe := &m.spec.Spec.Probes[i]
		c.checkTimes(m, i, &probe.Probe)
		if probe.Probe.Exec != nil {
			c.checkCommand(m.object, probePath(i)+".probe.exec.command", probe.Probe.Exec.Command)
			c.checkFailedLabels(m, i, probe)
		}
		c.checkDeletionCosts(m, i, probe)
	}
}

// checkOwnSelector finds labels whose keys are in the marker's selector.
func (c *checker) checkOwnSelector(m *marker) bool {
	selector := m.spec.Spec.Selector
	if selector == nil {
		return false
	}
	found := false
	for i, probe := range m.spec.Spec.Probes {
		for j := range probe.MarkerPolicy {
			for _, key := range probe.MarkerPolicy[j].LabelKeys() {
				if !selects(selector, key) {
					continue
				}
				found = true
				c.add(ruleMarkInSelector, m.object, fieldOf(m, i, mark.Label(key)),
					fmt.Sprintf("%q is a key of spec.selector: the marker would change which pods it selects", key),
					"set another label, or select the pods by other labels")
			}
		}
	}
	return found
}

func selects(selector *metav1.LabelSelector, key string) bool {
	_, matched := selector.MatchLabels[key]
	return matched || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key })
}

// checkTimes compares the period with the timeout, and lists unset fields with other defaults than in
// OpenKruise.
func (c *checker) checkTimes(m *marker, i int, probe *v1alpha1.ContainerProbeSpec) {
	defaults, path := plan.KubernetesDefaults(), probePath(i)+".probe"
	period, timeout := cmp.Or(probe.PeriodSeconds, defaults.PeriodSeconds), cmp.Or(probe.TimeoutSeconds, defaults.TimeoutSeconds)
	// The largest values that the fields can have do not overflow.
	unit, suffix, factor := "s", "Seconds", int64(1)
	if probe.PeriodMilliseconds != 0 || probe.TimeoutMilliseconds != 0 {
		unit, suffix, factor = "ms", "Milliseconds", 1000
	}
	times := [2]int64{int64(period) * factor, int64(timeout) * factor}
	for i, milliseconds := range []int32{probe.PeriodMilliseconds, probe.TimeoutMilliseconds} {
		if milliseconds != 0 {
			times[i] = int64(milliseconds)
		}
	}
	if times[0] > 0 && times[1] > times[0] {
		c.add(rulePeriod, m.object, path+".timeout"+suffix, fmt.Sprintf(
			"the timeout of %d %s is longer than the period of %d %s", times[1], unit, times[0], unit,
		),
			fmt.Sprintf("set period%s to %d or more, or timeout%s to %d or less", suffix, times[1], suffix, times[0]))
	}
	var unset, ours, theirs []string
	for _, f := range []struct {
		name            string
		value, standard int32
	}{{"periodSeconds", probe.PeriodSeconds, defaults.PeriodSeconds}, {"failureThreshold", probe.FailureThreshold, defaults.FailureThreshold}} {
		if f.value == 0 {
			unset, ours, theirs = append(unset, f.name), append(ours, fmt.Sprint(f.standard)), append(theirs, openKruiseDefault)
		}
	}
	if len(unset) > 0 {
		c.add(ruleDefaults, m.object, path, fmt.Sprintf("%s: the default is %s as in Kubernetes, and %s in OpenKruise 1.9",
			strings.Join(unset, " and "), strings.Join(ours, " and "), strings.Join(theirs, " and ")),
			"set the fields if the marker is also used with OpenKruise")
	}
}

// checkFailedLabels finds labels that claim a state that a failed command does not show.
func (c *checker) checkFailedLabels(m *marker, i int, probe *v1alpha1.PodContainerProbe) {
	doubt := shell.Doubt(probe.Probe.Exec.Command)
	if doubt == "" {
		return
	}
	for j, policy := range probe.MarkerPolicy {
		if policy.State != v1alpha1.ProbeFailed || len(policy.Labels) == 0 {
			continue
		}
		key := slices.Min(slices.Collect(maps.Keys(policy.Labels)))
		c.add(ruleFailedLabel, m.object, policyPath(i, j, "labels", key),
			fmt.Sprintf("%s=%s does not only mean that the check has failed: %s", key, policy.Labels[key], doubt),
			"set labels in the state Succeeded only, or run the program itself, without a shell: if it is missing, there is no result")
	}
}

// openKruiseDefault is the value of OpenKruise 1.9 for an unset period or threshold.
const openKruiseDefault = "1"

// checkDeletionCosts checks the values of the annotation that ReplicaSets and CloneSets read.
func (c *checker) checkDeletionCosts(m *marker, i int, probe *v1alpha1.PodContainerProbe) {
	for j, policy := range probe.MarkerPolicy {
		cost, found := policy.Annotations[corev1.PodDeletionCost]
		if _, valid := order.ParseDeletionCost(cost); found && !valid {
			c.add(ruleDeletionCost, m.object, policyPath(i, j, "annotations", corev1.PodDeletionCost),
				fmt.Sprintf("%q is not an integer from -2147483648 to 2147483647: the API server refuses the marks", cost),
				`use a decimal number without "+" and leading zeros, such as "-10"`)
		}
		for k, from := range policy.AnnotationsFrom {
			at := slices.IndexFunc(from.AllowedValues, func(v string) bool { return !extract.IsDeletionCost(v) })
			if from.Key == corev1.PodDeletionCost && at >= 0 {
				c.add(ruleDeletionCost, m.object, fmt.Sprintf("%s.markerPolicy[%d].annotationsFrom[%d].allowedValues[%d]", probePath(i), j, k, at),
					fmt.Sprintf("%q is not an integer from -2147483648 to 2147483647: the value is refused", from.AllowedValues[at]),
					`use a decimal number without "+" and leading zeros, such as "-10"`)
			}
		}
	}
}
