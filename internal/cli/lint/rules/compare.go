// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
)

// scope is what one namespace has. Nothing is compared across namespaces.
type scope struct {
	markers   []*marker
	workloads []*workload
	services  []*service
	budgets   []*budget
	// marks are the keys of labels that probes set, and printed those whose values they print.
	marks, printed sets.Set[string]
	// open are the keys of labels that pods may have with any value: those that controllers add and
	// those that probes set.
	open    sets.Set[string]
	matched map[*marker][]*workload
}

// compare runs the checks that need all objects.
func (c *checker) compare() {
	c.compareSets()
	scopes := map[string]*scope{}
	in := func(o *object) *scope {
		s := scopes[o.namespace()]
		if s == nil {
			s = &scope{open: controllerLabels(), marks: sets.New[string](), printed: sets.New[string](), matched: map[*marker][]*workload{}}
			scopes[o.namespace()] = s
		}
		return s
	}
	for _, m := range c.markers {
		s := in(m.object)
		s.markers = append(s.markers, m)
		for i := range m.spec.Spec.Probes {
			s.marks.Insert(labelsOf(&m.spec.Spec.Probes[i])...)
			for _, policy := range m.spec.Spec.Probes[i].MarkerPolicy {
				for _, from := range policy.LabelsFrom {
					s.printed.Insert(from.Key)
				}
			}
		}
	}
	for _, each := range c.budgets {
		s := in(each.object)
		s.budgets = append(s.budgets, each)
	}
	for _, w := range c.workloads {
		s := in(w.object)
		s.workloads = append(s.workloads, w)
	}
	for _, each := range c.services {
		s := in(each.object)
		s.services = append(s.services, each)
	}
	for _, s := range scopes {
		s.open = s.open.Union(s.marks)
		// The order in which probes claim a mark: by the name of the marker. Of markers with one name, the
		// last one takes effect, and duplicate-object reports the others.
		slices.SortStableFunc(s.markers, func(a, b *marker) int { return strings.Compare(a.raw.GetName(), b.raw.GetName()) })
		for _, m := range s.markers {
			for _, w := range s.workloads {
				if m.requirements.match(w.pod.Labels, s.open) {
					s.matched[m] = append(s.matched[m], w)
				}
			}
		}
		for _, m := range s.markers {
			c.checkSelected(s, m)
			c.checkWorkloadSelectors(s, m)
		}
		c.checkSharedMarks(s)
		c.checkBudgets(s)
		for _, each := range s.services {
			c.checkService(s, each)
		}
	}
}

// controllerLabels returns the keys of the labels that controllers add to the pods of workloads.
func controllerLabels() sets.Set[string] {
	return sets.New(
		appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey, appsv1.StatefulSetPodNameLabel,
		appsv1.PodIndexLabel, batchv1.JobNameLabel, "job-name", batchv1.ControllerUidLabel, "controller-uid",
		batchv1.JobCompletionIndexAnnotation, v1alpha1.CloneSetInstanceID, "lifecycle.apps.kruise.io/state",
	)
}

// labelsOf returns the keys of the labels that the probe sets in any state.
func labelsOf(probe *v1alpha1.PodContainerProbe) []string {
	keys := sets.New[string]()
	for i := range probe.MarkerPolicy {
		keys.Insert(probe.MarkerPolicy[i].LabelKeys()...)
	}
	return sets.List(keys)
}

// checkSelected checks that the marker selects a pod template, if the manifests have any, and that
// its probes can run in one of them.
func (c *checker) checkSelected(s *scope, m *marker) {
	matched := s.matched[m]
	if len(matched) == 0 {
		if len(c.workloads) > 0 {
			c.add(ruleNoPods, m.object, "spec.selector", c.noPods(s, m), "correct the selector, or the labels of the pod template")
		}
		return
	}
	for i := range m.spec.Spec.Probes {
		c.checkContainer(m, i, matched)
	}
}

// noPods returns the message for a marker that selects no pod template. It names the template that
// misses the fewest requirements.
func (c *checker) noPods(s *scope, m *marker) string {
	message := fmt.Sprintf("%q matches none of the pod templates in the manifests", m.requirements)
	if len(s.workloads) == 0 {
		return fmt.Sprintf("%s: none of them is in the namespace %s", message, m.namespace())
	}
	nearest := slices.MinFunc(s.workloads, func(a, b *workload) int {
		return cmp.Compare(len(m.requirements.unmet(a.pod.Labels, s.open)), len(m.requirements.unmet(b.pod.Labels, s.open)))
	})
	var differences []string
	for _, r := range m.requirements.unmet(nearest.pod.Labels, s.open) {
		value, has := nearest.pod.Labels[r.Key()]
		difference := "no label " + r.Key()
		if has {
			difference = r.Key() + "=" + value
		}
		differences = append(differences, difference)
	}
	return fmt.Sprintf("%s: the pods of %s have %s", message, nearest.place(), strings.Join(differences, ", "))
}

// checkWorkloadSelectors finds labels that a workload selects its own pods by.
func (c *checker) checkWorkloadSelectors(s *scope, m *marker) {
	for _, w := range s.matched[m] {
		for i := range m.spec.Spec.Probes {
			probe := &m.spec.Spec.Probes[i]
			for _, key := range labelsOf(probe) {
				if !slices.ContainsFunc(w.selector, hasKey(key)) {
					continue
				}
				c.add(ruleMarkInWorkload, m.object, fieldOf(m, i, mark.Label(key)),
					fmt.Sprintf("%q is a key of the selector of %s, which loses the pod when the value changes", key, w.place()),
					"set another label")
			}
		}
	}
}

// checkService finds a value that no probe sets in the selector of a Service.
func (c *checker) checkService(s *scope, each *service) {
	for _, key := range slices.Sorted(maps.Keys(each.selector)) {
		values, setters := sets.New[string](), []*marker{}
		others := maps.Clone(each.selector)
		maps.DeleteFunc(others, func(k, _ string) bool { return s.open.Has(k) })
		for _, m := range s.markers {
			if set := valuesOf(m, key, each.selector[key]); set.Len() > 0 && overlap(m.requirements, equals(others)) {
				values, setters = values.Union(set), append(setters, m)
			}
		}
		if len(setters) == 0 || values.Has(each.selector[key]) || s.unmarked(each.selector, setters) {
			continue
		}
		c.add(ruleServiceValue, each.object, "spec.selector["+key+"]",
			fmt.Sprintf("no probe sets %s=%s: %s sets %s", key, each.selector[key], setters[0].place(), strings.Join(sets.List(values), ", ")),
			"select one of these values, or set this one in a markerPolicy")
	}
}

// unmarked reports whether a workload that none of the markers selects has the labels.
func (s *scope) unmarked(selector map[string]string, markers []*marker) bool {
	return slices.ContainsFunc(s.workloads, func(w *workload) bool {
		return equals(selector).match(w.pod.Labels, controllerLabels()) &&
			!slices.ContainsFunc(markers, func(m *marker) bool { return slices.Contains(s.matched[m], w) })
	})
}

// valuesOf returns the values that the marker gives to a label. If a probe may print any value, the
// wanted one is among them.
func valuesOf(m *marker, key, wanted string) sets.Set[string] {
	values := sets.New[string]()
	for _, probe := range m.spec.Spec.Probes {
		for _, policy := range probe.MarkerPolicy {
			if value, found := policy.Labels[key]; found {
				values.Insert(value)
			}
			for _, from := range policy.LabelsFrom {
				switch {
				case from.Key != key:
				case len(from.AllowedValues) == 0:
					values.Insert(wanted)
				default:
					values.Insert(from.AllowedValues...)
				}
			}
		}
	}
	return values
}
