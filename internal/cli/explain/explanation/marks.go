// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// marks adds a step for each probe about the marks that the pod should have and has, and one about
// marks without a probe.
func (e *explainer) marks() {
	claims, conflicts := mark.Claim(e.view.Plan.Probes)
	set, removed := mark.Differences(e.owned, e.desired)
	wrong := slices.Concat(set, removed, e.view.Leftover(e.owned, e.desired))
	for _, p := range e.view.Plan.Probes {
		if !e.shown(p.ID.Marker) {
			continue
		}
		for _, c := range conflicts {
			if c.Loser == p.ID {
				e.problem("Marks of "+p.ID.String(), diagnosis.Conflict(c), e.kubectl("get podprobemarker %s -o yaml", c.Winner.Marker),
					"the first probe in the order of marker names, and of the probes in a marker, takes effect")
			}
		}
		e.marksOf(p, claims, wrong)
	}
	e.leftovers()
}

// marksOf adds the step about the marks of one probe.
func (e *explainer) marksOf(p plan.PlannedProbe, claims mark.Claims, wrong []mark.Key) {
	title := "Marks of " + p.ID.String()
	declared := mark.Declared(p.Source)
	if len(declared) == 0 {
		e.problem(title, "the probe declares no marks: it has neither a podConditionType nor a markerPolicy",
			e.kubectl("edit podprobemarker %s", p.ID.Marker))
		return
	}
	state, known := e.view.Report.State(p)
	if !known {
		if !e.guessed {
			return // The step about the report says why.
		}
		e.add(Step{Title: title, Verdict: Unknown, Text: "the state is unknown, so the marks cannot be checked",
			Evidence: e.lines(e.owned, declared)})
		return
	}
	var mine, bad []mark.Key
	for _, key := range declared {
		if claims[key] == p.ID {
			mine = append(mine, key)
			if slices.Contains(wrong, key) {
				bad = append(bad, key)
			}
		}
	}
	lines := e.lines(e.desired, mine)
	for _, refused := range mark.RefusedValues(e.view.Plan.Probes, e.view.Report, e.owned) {
		if refused.Probe == p.ID {
			e.add(Step{Title: title, Verdict: Info, Text: refused.String()})
		}
	}
	switch {
	case len(bad) > 0:
		e.mismatch(title, p.ID, state.LastTransitionTime.Time, bad)
	case len(mine) == 0:
	case len(lines) == 0:
		e.add(Step{Title: title, Verdict: Info, Text: fmt.Sprintf("the state %s sets no marks: %s", state.State, policies(p.Source))})
	default:
		e.add(Step{Title: title, Verdict: OK, Text: strings.Join(lines, ", ")})
	}
}

// policies describes for which states a probe declares labels and annotations.
func policies(source *v1alpha1.PodContainerProbe) string {
	var states []string
	for _, policy := range source.MarkerPolicy {
		states = append(states, string(policy.State))
	}
	return fmt.Sprintf("its markerPolicy has an entry for %s only, and it has no podConditionType", strings.Join(states, " and "))
}

// mismatch adds the step about marks that the pod has and should not have, or the other way round.
func (e *explainer) mismatch(title string, id identity.ID, since time.Time, keys []mark.Key) {
	var evidence []string
	owners := mark.Owners(e.in.Pod.ManagedFields)
	for _, key := range keys {
		want, got := valueOf(e.desired, key), e.actual(key)
		line := fmt.Sprintf("%s should be %s, and is %s", key, want, got)
		if want == got {
			line += ", with another message, time or owner"
		}
		evidence = append(evidence, line+e.otherOwners(owners[key]))
	}
	if key := keys[0]; e.actual(key) == absent {
		if manager, at := e.lastWrite(true); manager != "" {
			evidence = append(evidence, fmt.Sprintf("the last other client that changed the pod is %s, %s ago", manager, e.age(at)))
		}
	}
	text := "the pod does not have the marks of the state: " + keyNames(keys)
	if c := e.notApplied(id.Marker); c != nil {
		e.problem(title, text+": "+strings.ToLower(c.Message[:1])+c.Message[1:], e.kubectl("describe podprobemarker %s", id.Marker), evidence...)
		return
	}
	if _, at := e.lastWrite(false); at.After(since) {
		since = at
	}
	e.late(since, title, text+": the manager has not written them", e.managerLogs(), evidence...)
}

// notApplied returns the condition of the marker that says why marks are not written, if there is
// one.
func (e *explainer) notApplied(marker string) *metav1.Condition {
	for _, m := range e.in.Markers {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionMarksApplied)
		if m.Name == marker && c != nil && c.Status == metav1.ConditionFalse && c.Message != "" {
			return c
		}
	}
	return nil
}

// leftovers adds the steps about marks that no planned probe declares.
func (e *explainer) leftovers() {
	if e.in.Marker != "" {
		return
	}
	claims, _ := mark.Claim(e.view.Plan.Probes)
	var keys []mark.Key
	for _, key := range e.owned.Keys() {
		if _, claimed := claims[key]; !claimed && !e.desired.Has(key) {
			keys = append(keys, key)
		}
	}
	owners := mark.Owners(e.in.Pod.ManagedFields)
	if len(keys) > 0 {
		var evidence []string
		for _, key := range keys {
			evidence = append(evidence, fmt.Sprintf("%s=%s", key, e.actual(key))+e.otherOwners(owners[key]))
		}
		e.late(e.findings.Changed(), "Other marks", "the pod has marks that no probe requires: the manager has not removed them", e.managerLogs(), evidence...)
	}
	e.foreign(claims, owners)
}

// foreign adds the keys that markers which do not apply to the pod declare, and that the pod has
// from other clients: they are not marks, so Seamark does not remove them.
func (e *explainer) foreign(claims mark.Claims, owners map[mark.Key][]mark.Owner) {
	var lines []string
	for _, m := range sorted(e.in.Markers) {
		for i := range m.Spec.Probes {
			for _, key := range mark.Declared(&m.Spec.Probes[i]) {
				_, claimed := claims[key]
				if claimed || e.owned.Has(key) || e.actual(key) == absent {
					continue
				}
				if line := fmt.Sprintf("%s=%s", key, e.actual(key)) + e.otherOwners(owners[key]); !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	if len(lines) > 0 {
		e.add(Step{Title: "Keys of others", Verdict: Info, Evidence: lines,
			Text: "these are not marks, although a marker that does not apply to the pod declares them: Seamark does not remove them"})
	}
}

// absent is the value of a key that the pod does not have.
const absent = "missing"

// actual returns the pod's value of a key.
func (e *explainer) actual(key mark.Key) string {
	if value, found := key.In(e.in.Pod); found {
		return value
	}
	return absent
}

func valueOf(marks mark.Marks, key mark.Key) string {
	if value, found := marks[key]; found {
		return value.String()
	}
	return absent
}

func (e *explainer) lines(marks mark.Marks, keys []mark.Key) []string {
	var lines []string
	for _, key := range keys {
		if marks.Has(key) {
			lines = append(lines, fmt.Sprintf("%s=%s", key, valueOf(marks, key)))
		}
	}
	return lines
}

func keyNames(keys []mark.Key) string {
	names := make([]string, 0, len(keys))
	for _, key := range keys {
		names = append(names, key.String())
	}
	return strings.Join(names, ", ")
}

// otherOwners describes the other owners of a key.
func (e *explainer) otherOwners(owners []mark.Owner) string {
	var names []string
	for _, owner := range owners {
		if owner.Manager == v1alpha1.FieldManager {
			continue
		}
		name := owner.Manager
		if !owner.Time.IsZero() {
			name += ", " + e.age(owner.Time.Time) + " ago"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (set by " + strings.Join(names, " and ") + ")"
}

func ofSeamark(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == v1alpha1.FieldManager }

// lastWrite returns which client except the kubelet last changed the pod, and when. Seamark counts only
// if it is not one of the others.
func (e *explainer) lastWrite(others bool) (manager string, at time.Time) {
	for _, entry := range e.in.Pod.ManagedFields {
		if entry.Manager != "kubelet" && (!others || !ofSeamark(entry)) && entry.Time != nil && entry.Time.After(at) {
			manager, at = entry.Manager, entry.Time.Time
		}
	}
	return manager, at
}

// outcome returns the conclusion if there is no problem, and whether the pod is marked as it should
// be.
func (e *explainer) outcome() (string, bool) {
	var states []string
	unchecked := e.unchecked()
	for _, p := range e.view.Plan.Probes {
		if !e.shown(p.ID.Marker) {
			continue
		}
		state, known := e.view.Report.State(p)
		if !known {
			continue
		}
		line := fmt.Sprintf("%s is %s", p.ID, state.State)
		if marks := e.lines(e.desired, mark.Declared(p.Source)); len(marks) > 0 {
			line += " (" + strings.Join(marks, ", ") + ")"
		} else {
			line += ", and this state sets no marks"
		}
		states = append(states, line)
	}
	switch {
	case len(states) == 0 && len(unchecked) == 0:
		return "Unknown: no probe of the pod has a state", false
	case len(states) == 0:
		return "Unknown: this could not be read: " + list(unchecked), false
	}
	text := "Marked: " + strings.Join(states, "; ")
	if len(unchecked) > 0 {
		text += ". Not checked: " + strings.Join(unchecked, ", ")
	}
	return text, true
}
