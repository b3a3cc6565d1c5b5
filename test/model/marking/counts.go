// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// This file is the model of the status of markers: see docs/concepts.md. It reads the stored reports and plans.

// entryOf returns the states that are reported about a pod, and whether there are any: those with the latest change.
func (w *world) entryOf(pod *corev1.Pod) (states []v1alpha1.ContainerProbeState, found bool) {
	latest := func(states []v1alpha1.ContainerProbeState) (change, run time.Time) {
		for _, s := range states {
			if s.LastTransitionTime.After(change) {
				change = s.LastTransitionTime.Time
			}
			if s.LastProbeTime.After(run) {
				run = s.LastProbeTime.Time
			}
		}
		return change, run
	}
	// Ordered by number.
	for _, o := range w.server.List(reports) {
		report := o.(*seamarkv1alpha1.ProbeReport) //nolint:forcetypeassert // all are
		for _, entry := range report.Pods {
			if entry.UID != string(pod.UID) || report.NodeName != pod.Spec.NodeName {
				continue
			}
			change, run := latest(states)
			newChange, newRun := latest(entry.Probes)
			if order := newChange.Compare(change); !found || order > 0 || order == 0 && newRun.After(run) {
				states, found = entry.Probes, true
			}
		}
	}
	return states, found
}

// plannedAs returns the value by which states of a probe are told from those of another marker with the same name.
func (w *world) plannedAs(marker string, probe *v1alpha1.PodContainerProbe) string {
	for _, o := range w.server.List(slicesOfPlans) {
		for _, pod := range o.(*seamarkv1alpha1.ProbePlan).Pods { //nolint:forcetypeassert // all are
			for i := range pod.Probes {
				if planned := &pod.Probes[i]; planned.Name == marker+"#"+probe.Name && planned.Probe.Exec.Command[0] == token(probe) {
					return planned.Plan
				}
			}
		}
	}
	return "none"
}

// reported returns the state that is reported for a probe of a pod, which is empty if there is none, and whether anything is reported
// about the pod.
func (w *world) reported(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) (state v1alpha1.ContainerProbeState, about bool) {
	states, about := w.entryOf(pod)
	marker, _, _ := strings.Cut(token(probe), ".")
	for _, s := range states {
		if s.Name == marker+"#"+probe.Name && s.Plan == w.plannedAs(marker, probe) && oracle.HasContainer(pod, probe.ContainerName) {
			return s, about
		}
	}
	return state, about
}

// checkStatus compares the status of all markers with the rules.
func (w *world) checkStatus() error {
	for _, o := range w.server.List(markers) {
		marker := o.(*v1alpha1.PodProbeMarker) //nolint:forcetypeassert // all are
		want := v1alpha1.PodProbeMarkerStatus{ObservedGeneration: marker.Generation}
		for i := range marker.Spec.Probes {
			want.Probes = append(want.Probes, v1alpha1.ProbeCounts{Name: marker.Spec.Probes[i].Name})
		}
		for _, pod := range w.games() {
			if oracle.Probed(pod) && matches(marker, pod.Labels) {
				want.MatchedPods++
				w.countPod(&want, marker, pod)
			}
		}
		have := marker.Status.DeepCopy()
		// The conditions are checked below. What a runtime says about containers that are gone is not a matter of counts.
		have.Conditions, have.PodErrors = nil, nil
		for i := range have.Probes {
			if have.Probes[i].Stale > 0 || want.Probes[i].LastTransitionTime == nil && have.Probes[i].LastTransitionTime == nil {
				want.Probes[i].LastTransitionTime, have.Probes[i].LastTransitionTime = nil, nil
			}
		}
		if diff := cmp.Diff(&want, have); diff != "" {
			return fmt.Errorf("marker %s has a wrong status (-want +have):\n%s", marker.Name, diff)
		}
		if err := w.checkConditions(marker, want.MatchedPods); err != nil {
			return err
		}
	}
	return nil
}

// countPod adds the states of a pod to the counts.
func (w *world) countPod(counts *v1alpha1.PodProbeMarkerStatus, marker *v1alpha1.PodProbeMarker, pod *corev1.Pod) {
	for i := range marker.Spec.Probes {
		probe, c := &marker.Spec.Probes[i], &counts.Probes[i]
		state, _ := w.reported(pod, probe)
		stale, counted := w.isStale(pod, probe), state.State
		w.eachProbe(pod, func(each *v1alpha1.PodContainerProbe, claimed map[field]bool) {
			if token(each) == token(probe) {
				counted = contested(pod, each, state.State, claimed)
			}
		})
		switch {
		case state.State == "":
			c.NotRunning++
			continue
		case stale:
			c.Stale++
			c.Unknown++
			counts.Unknown++
		case counted == v1alpha1.ProbeSucceeded:
			c.Succeeded++
			counts.Succeeded++
		case counted == v1alpha1.ProbeFailed:
			c.Failed++
			counts.Failed++
		default:
			c.Unknown++
			counts.Unknown++
		}
		if at := state.LastTransitionTime; c.LastTransitionTime == nil || at.After(c.LastTransitionTime.Time) {
			c.LastTransitionTime = &metav1.Time{Time: at.Time}
		}
	}
}

// checkConditions compares what the conditions of a marker say about numbers of pods with the rules.
func (w *world) checkConditions(marker *v1alpha1.PodProbeMarker, matched int64) error {
	resolved := meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionProbesResolved)
	applied := meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionMarksApplied)
	exclusive := meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionMarksExclusive)
	if resolved == nil || applied == nil || exclusive == nil {
		return fmt.Errorf("marker %s lacks conditions", marker.Name)
	}
	var missing, conflicts, refused []string
	for i := range marker.Spec.Probes {
		probe := &marker.Spec.Probes[i]
		lacks, loses, lacksValue := 0, map[string]int{}, map[field]int{}
		for _, pod := range w.games() {
			switch {
			case !oracle.Probed(pod) || !matches(marker, pod.Labels):
			case !oracle.HasContainer(pod, probe.ContainerName):
				lacks++
			default:
				for _, text := range w.lost(pod, probe) {
					loses[text]++
				}
				for _, key := range w.refused(pod, probe) {
					lacksValue[key]++
				}
			}
		}
		if lacks > 0 {
			missing = append(missing, fmt.Sprintf("(%d of %d matched pods", lacks, matched))
		}
		for text, n := range loses {
			conflicts = append(conflicts, fmt.Sprintf("%s (%d of %d matched pods", text, n, matched))
		}
		for key, n := range lacksValue {
			refused = append(refused, fmt.Sprintf("Probe %q: %s %s is not set (pods: %d,", probe.Name, key.Kind, key.Name, n))
		}
	}
	if len(missing) == 0 && len(marker.Status.PodErrors) > 0 {
		missing = []string{marker.Status.PodErrors[0].Message}
	}
	if len(refused) == 0 && w.isNew() {
		// What an earlier manager has found is kept for a minute.
		refused = []string{applied.Message}
	}
	return says(marker.Name, resolved, missing, false, says(marker.Name, exclusive, conflicts, false, says(marker.Name, applied, refused, true, nil)))
}

// isNew reports whether the manager was started less than about a minute ago.
func (w *world) isNew() bool { return time.Since(w.managers[0].since) < 70*time.Second }

// says returns an error if the condition does not say all of the texts, or says something although there are none. It may have other
// reasons if that is allowed.
func says(marker string, condition *metav1.Condition, texts []string, others bool, err error) error {
	if err != nil {
		return err
	}
	if len(texts) == 0 && !others && condition.Status != metav1.ConditionTrue {
		return fmt.Errorf("condition %s of marker %s is %s: %s, want none", condition.Type, marker, condition.Status, condition.Message)
	}
	if len(texts) == 0 && condition.Reason == "ValueRefused" {
		return fmt.Errorf("condition %s of marker %s says %s, want none", condition.Type, marker, condition.Message)
	}
	for _, text := range texts {
		if !strings.Contains(condition.Message, text) {
			return fmt.Errorf("condition %s of marker %s says %q, want %q", condition.Type, marker, condition.Message, text)
		}
	}
	return nil
}
