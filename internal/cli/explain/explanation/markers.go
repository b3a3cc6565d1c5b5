// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxOthers is the maximum number of markers that do not match that are shown.
const maxOthers = 5

// markers adds a step for each marker. It returns false if none applies to the pod.
func (e *explainer) markers() bool {
	if e.unread(permission.Markers, "Markers", "the markers of namespace "+e.in.Namespace) {
		return false
	}
	if e.in.Marker != "" && !slices.ContainsFunc(e.in.Markers, func(m *v1alpha1.PodProbeMarker) bool { return m.Name == e.in.Marker }) {
		e.unknownMarker()
		return false
	}
	var others []other
	matched := 0
	for _, m := range sorted(e.in.Markers) {
		compiled, why, err := compile(m)
		verb := "edit"
		if why == "" {
			verb = "describe"
		}
		switch {
		case err != nil:
			e.invalid[m.Name] = err
			if e.shown(m.Name) && selects(m, e.in.Pod.Labels) {
				matched++
				e.problem("Marker "+m.Name, "it has no effect"+why+": "+err.Error(), e.kubectl(verb+" podprobemarker %s", m.Name))
			}
			continue
		case e.shown(m.Name) && compiled.Matches(e.in.Pod):
			matched++
			e.marker(m, compiled)
		case e.shown(m.Name):
			others = append(others, e.compare(compiled))
		}
		e.compiled = append(e.compiled, compiled)
	}
	e.others(others, matched)
	// The next steps explain marks without a marker.
	return matched > 0 || slices.ContainsFunc(e.in.Pod.ManagedFields, ofSeamark)
}

// compile returns the marker, or why it has no effect. The manager reports which namespaces are excluded.
func compile(m *v1alpha1.PodProbeMarker) (compiled *plan.Marker, why string, err error) {
	if compiled, err = plan.Compile(m); err != nil {
		return nil, ", because it is invalid", err //nolint:wrapcheck // It is shown as it is.
	}
	found := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProbesResolved)
	if found != nil && found.Status == metav1.ConditionFalse && found.Reason == string(plan.NamespaceExcluded) {
		return nil, "", errors.New(found.Message)
	}
	return compiled, "", nil
}

func sorted(markers []*v1alpha1.PodProbeMarker) []*v1alpha1.PodProbeMarker {
	return slices.SortedFunc(slices.Values(markers), func(a, b *v1alpha1.PodProbeMarker) int { return strings.Compare(a.Name, b.Name) })
}

// selects reports whether the selector of a marker that may be invalid selects the labels, or is
// invalid itself.
func selects(m *v1alpha1.PodProbeMarker, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.Selector)
	return err != nil || m.Spec.Selector == nil || selector.Matches(labels.Set(of))
}

func (e *explainer) unknownMarker() {
	var names []string
	for _, m := range sorted(e.in.Markers) {
		names = append(names, m.Name)
	}
	e.problem("Marker "+e.in.Marker, fmt.Sprintf("namespace %s has no such marker", e.in.Namespace), e.kubectl("get podprobemarkers"),
		"markers of the namespace: "+list(names)+similar(e.in.Marker, names))
}

// marker adds the step about a marker that matches.
func (e *explainer) marker(m *v1alpha1.PodProbeMarker, compiled *plan.Marker) {
	title, describe := "Marker "+m.Name, e.kubectl("describe podprobemarker %s", m.Name)
	var evidence []string
	blocked := false
	for _, c := range m.Status.Conditions {
		// The status may be that before the pod was bound to its node.
		if c.Status == metav1.ConditionFalse && c.Type != v1alpha1.ConditionPodsMatched {
			evidence = append(evidence, fmt.Sprintf("its condition %s is False (%s): %s", c.Type, c.Reason, c.Message))
			blocked = blocked || c.Type == v1alpha1.ConditionMarksRemoved
		}
	}
	switch {
	case compiled.Deleting:
		what := fmt.Sprintf("it has been deleting for %s: its probes are not planned any more, and its marks are removed", e.age(m.DeletionTimestamp.Time))
		if blocked {
			what += ", but the removal makes no progress"
		} else if len(m.Finalizers) > 0 {
			evidence = append(evidence, "it waits for its finalizers: "+list(m.Finalizers))
		}
		if !blocked && e.in.Marker == "" && e.followed() {
			e.add(Step{Title: title, Verdict: Info, Text: what, Evidence: evidence})
			break
		}
		e.problem(title, what, describe, evidence...)
	case !slices.Contains(m.Finalizers, v1alpha1.PodProbeMarkerFinalizer):
		e.late(podview.Edited(m), title, "it matches, but the manager has not processed it", e.managerLogs(),
			append(evidence, "it does not have the finalizer "+v1alpha1.PodProbeMarkerFinalizer)...)
	case m.Status.ObservedGeneration < m.Generation:
		e.late(podview.Edited(m), title, "it matches, but the manager has not processed its last change", e.managerLogs(),
			append(evidence, fmt.Sprintf("its generation is %d, and its status is that of generation %d", m.Generation, m.Status.ObservedGeneration))...)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: "it matches: " + labels.NewSelector().Add(compiled.Requirements()...).String(), Evidence: evidence})
	}
}

// followed reports whether a marker that is not being deleted selects the pod.
func (e *explainer) followed() bool {
	return slices.ContainsFunc(e.in.Markers, func(m *v1alpha1.PodProbeMarker) bool {
		compiled, err := plan.Compile(m)
		return err == nil && compiled.Selects(e.in.Pod)
	})
}

// other is a marker that does not match.
type other struct {
	name string
	// unmet are the requirements that the pod does not meet, as text. near is how many of them are
	// similar to what the pod has.
	unmet []string
	near  int
}

// compare returns how a marker differs from the labels of the pod.
func (e *explainer) compare(m *plan.Marker) other {
	o := other{name: m.Name}
	have := e.in.Pod.Labels
	for _, r := range m.Unmet(have) {
		value, found := have[r.Key()]
		difference := fmt.Sprintf("it requires %s, and the pod has ", r.String())
		if found {
			difference += fmt.Sprintf("%s=%s", r.Key(), value)
			if text.Closest(value, r.ValuesUnsorted()) != "" {
				o.near++
				difference += ", which is similar"
			}
		} else {
			meant := similar(r.Key(), slices.Sorted(maps.Keys(have)))
			if meant != "" {
				o.near++
			}
			difference += fmt.Sprintf("no label %s%s", r.Key(), meant)
		}
		o.unmet = append(o.unmet, difference)
	}
	return o
}

// immutable says what to do about a selector that does not match.
const immutable = "the selector of a marker is immutable: correct the labels in the pod template, or delete the marker and create another one"

// nearer compares how far markers are from matching.
func nearer(a, b other) int {
	return cmp.Or(len(a.unmet)-len(b.unmet), min(b.near, 1)-min(a.near, 1), strings.Compare(a.name, b.name))
}

// similar returns which of the candidates may have been meant, for a line of evidence.
func similar(word string, candidates []string) string {
	if closest := text.Closest(word, candidates); closest != "" && closest != word {
		return " (" + text.DidYouMean(closest) + ")"
	}
	return ""
}

// others adds the steps about markers that do not match, the closest first. If none matches, that
// is a problem.
func (e *explainer) others(others []other, matched int) {
	slices.SortStableFunc(others, nearer)
	if matched == 0 && len(others) == 0 && len(e.invalid) == 0 {
		e.nowhere()
		return
	}
	for i, o := range others {
		if i == maxOthers {
			e.add(Step{Title: "Markers", Verdict: Info, Text: fmt.Sprintf("%d more do not match", len(others)-i)})
			break
		}
		title, what := "Marker "+o.name, "it does not match: "+o.unmet[0]
		if matched == 0 && i == 0 {
			what = "no marker matches the pod, and this one is the closest: " + o.unmet[0]
			if e.in.Marker != "" {
				what = "it does not match: " + o.unmet[0]
			}
			evidence := append(slices.Clone(o.unmet[1:]), immutable)
			e.problem(title, what, e.kubectl("get podprobemarker %s -o yaml", o.name), evidence...)
			continue
		}
		e.add(Step{Title: title, Verdict: Info, Text: what, Evidence: o.unmet[1:]})
	}
}

// nowhere adds the problem that the namespace has no marker.
func (e *explainer) nowhere() {
	what := fmt.Sprintf("namespace %s has no marker: a marker selects only pods of its own namespace", e.in.Namespace)
	var found []string
	for _, m := range e.in.Elsewhere {
		if m.Namespace != e.in.Namespace && m.Spec.Selector != nil && selects(m, e.in.Pod.Labels) {
			found = append(found, m.Namespace+"/"+m.Name)
		}
	}
	if len(found) == 0 {
		e.problem("Markers", what, "kubectl get podprobemarkers --all-namespaces")
		return
	}
	slices.Sort(found)
	namespace, name, _ := strings.Cut(found[0], "/")
	e.problem("Markers", what, fmt.Sprintf("kubectl -n %s get podprobemarker %s -o yaml", namespace, name),
		"markers of other namespaces with a selector that fits: "+list(found[:min(len(found), maxOthers)]))
}
