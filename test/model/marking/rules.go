// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// This file is the model of the rules of docs/concepts.md. It does not call the packages that it checks.

// markPrefix begins the keys of all marks.
const markPrefix = "model.io/"

// marks are the values of labels and annotations, and the statuses and reasons of conditions.
type marks = oracle.Marks

// history is what happened in a run, as far as it decides which marks were ever allowed.
type history struct {
	// versions are all markers that users ever stored.
	versions []*v1alpha1.PodProbeMarker
	// labels are the labels that each pod ever had, outcomes the states that each probe of a pod may have had.
	labels map[types.UID][]map[string]string
	states map[types.UID]map[string]map[v1alpha1.ProbeState]bool
	// ended and restarted are the pods of which a container ever ended or restarted.
	ended, restarted map[types.UID]bool
	// labelled are the mark labels that users ever set.
	labelled map[types.UID]map[string]bool
	// moved are the pods whose labels a user has ever changed.
	moved map[types.UID]bool
	// lost are the nodes that have ever been lost, and nodes those of the pods.
	lost  map[string]bool
	nodes map[types.UID]string
	// messages are what each probe of a pod has ever printed, results the probes that have had a result in a container.
	messages map[string]map[string]bool
	results  map[string]bool
}

func newHistory() history {
	return history{
		labels: map[types.UID][]map[string]string{}, states: map[types.UID]map[string]map[v1alpha1.ProbeState]bool{},
		ended: map[types.UID]bool{}, restarted: map[types.UID]bool{}, labelled: map[types.UID]map[string]bool{}, moved: map[types.UID]bool{},
		lost: map[string]bool{}, nodes: map[types.UID]string{}, messages: map[string]map[string]bool{}, results: map[string]bool{},
	}
}

// token identifies a probe of a marker, whatever is edited. Another marker of the same name has other tokens.
func token(p *v1alpha1.PodContainerProbe) string { return p.Probe.Exec.Command[0] }

func matches(m *v1alpha1.PodProbeMarker, labels map[string]string) bool {
	for key, value := range m.Spec.Selector.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// wanted returns the marks that the pod must have when nothing changes any more, and the keys that probes with a state claim.
func (w *world) wanted(pod *corev1.Pod) (want marks, claimed map[field]bool) {
	want, claimed = marks{}, map[field]bool{}
	if !oracle.Probed(pod) {
		return want, claimed
	}
	w.eachProbe(pod, func(probe *v1alpha1.PodContainerProbe, before map[field]bool) {
		for key, value := range w.wantedOf(pod, probe, before) {
			if !before[key] && !before[field{Kind: key.Kind, Name: key.Name}] {
				want[key] = value
			}
		}
		if w.state(pod, probe) == "" {
			// As long as a probe has no state, its keys stay as they are.
			return
		}
		for key := range oracle.Declared(probe) {
			claimed[key] = claimed[key] || !before[key]
		}
	})
	return want, claimed
}

// wantedOf returns the marks that a probe sets. before are the keys of earlier probes.
func (w *world) wantedOf(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe, before map[field]bool) marks {
	report, about := w.reported(pod, probe)
	state, reason := w.state(pod, probe), ""
	mine := w.mine(pod, probe, before)
	switch {
	case w.isStale(pod, probe) && (state != "" || !about && len(mine) > 0):
		state, reason = v1alpha1.ProbeUnknown, v1alpha1.ReasonStale
	case !about:
		// As long as nothing is known, the pod keeps what it has.
		return mine
	default:
		if counted := contested(pod, probe, state, before); counted != state {
			state, reason = counted, v1alpha1.ReasonClaimLost
		}
	}
	if state == "" {
		return nil
	}
	want := oracle.MarksIn(probe, state)
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; policy.State == state {
			valuesIn(policy, report.Message, want)
		}
	}
	if probe.PodConditionType != "" && reason != "" {
		want[field{Kind: oracle.Condition, Name: probe.PodConditionType, Field: "reason"}] = reason
	}
	return want
}

// mine returns those marks of the probe that Seamark has set.
func (w *world) mine(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe, before map[field]bool) marks {
	keys, owned := oracle.Declared(probe), w.server.ownersOf(pod.UID)[v1alpha1.FieldManager]
	found := actual(pod)
	maps.DeleteFunc(found, func(key field, _ string) bool {
		whole := field{Kind: key.Kind, Name: key.Name}
		return !keys[whole] || before[whole] || !owned[whole]
	})
	return found
}

// state returns the state that a probe has when nothing changes any more. If its Node is gone, its agent is stopped, or the container has
// not started up, it is the one that is reported.
func (w *world) state(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) v1alpha1.ProbeState {
	n := w.nodes[pod.Spec.NodeName]
	if _, err := w.server.Get(nodes, types.NamespacedName{Name: n.name}); err != nil || !n.running || w.waits(pod, probe) {
		report, _ := w.reported(pod, probe)
		return report.State
	}
	for _, c := range n.containersOf(pod.UID) {
		switch {
		case c.Name != probe.ContainerName:
		case !c.Running:
			return v1alpha1.ProbeFailed
		case w.outcome(pod.UID, token(probe)):
			return v1alpha1.ProbeSucceeded
		default:
			return v1alpha1.ProbeFailed
		}
	}
	return ""
}

// actual returns the marks of the pod, whoever set them.
func actual(pod *corev1.Pod) marks {
	found := oracle.Actual(pod)
	maps.DeleteFunc(found, func(key field, _ string) bool { return !strings.HasPrefix(key.Name, markPrefix) })
	return found
}

// checkRest compares all pods with the rules when nothing changes any more.
func (w *world) checkRest() error {
	for _, pod := range w.games() {
		if oracle.Ended(pod) {
			continue
		}
		want, claimed := w.wanted(pod)
		have := actual(pod)
		for key, value := range have {
			isUsers := value == userValue && !claimed[key] && w.history.labelled[pod.UID][key.Name]
			if wanted, has := want[key]; !isUsers && (!has || wanted != value) {
				return fmt.Errorf("pod %s (%s) has %s=%q, want %q", pod.Name, pod.UID, key, value, wanted)
			}
		}
		for key, value := range want {
			if _, has := have[key]; !has {
				return fmt.Errorf("pod %s (%s) lacks %s=%q", pod.Name, pod.UID, key, value)
			}
		}
	}
	if err := w.checkSeats(); err != nil {
		return err
	}
	if err := w.checkMessages(); err != nil {
		return err
	}
	if err := w.checkStatus(); err != nil {
		return err
	}
	for _, o := range w.server.List(markers) {
		if o.GetDeletionTimestamp() != nil {
			return fmt.Errorf("marker %s is not released", o.GetName())
		}
		if !slices.Contains(o.GetFinalizers(), v1alpha1.PodProbeMarkerFinalizer) {
			return fmt.Errorf("marker %s has no finalizer", o.GetName())
		}
	}
	return nil
}

// checkWrite checks a write while the run goes on.
func (w *world) checkWrite(by string, k kind, e event) {
	switch {
	case !strings.HasPrefix(by, "manager"):
	case k == pods && e.After != nil:
		w.checkMarks(e)
		w.checkExclusive(e)
	case k == markers && e.After == nil:
		w.checkRelease(by, e)
	case e.After == nil && k >= plans:
		// Plans and reports belong to a Node.
		owners := e.Before.GetOwnerReferences()
		if node, err := w.server.Get(nodes, types.NamespacedName{Name: owners[0].Name}); err == nil && node.GetUID() == owners[0].UID {
			w.fail(fmt.Errorf("%s deletes %s %s of Node %s, which exists", by, k, e.Key.Name, node.GetName()))
		}
	}
}

// checkMarks checks that each mark that a manager has written was allowed at some time by some rule.
func (w *world) checkMarks(e event) {
	pod := e.After.(*corev1.Pod)             //nolint:forcetypeassert // of this kind
	before := actual(e.Before.(*corev1.Pod)) //nolint:forcetypeassert // of this kind
	for key, value := range actual(pod) {
		if before[key] != value && !w.everAllowed(pod.UID, key, value) {
			w.fail(fmt.Errorf("pod %s (%s) gets %s=%q, which no rule ever allowed", pod.Name, pod.UID, key, value))
		}
	}
}

// everAllowed reports whether a marker that selected the pod at some time had such a mark for a state that its
// probe may have had.
func (w *world) everAllowed(pod types.UID, key field, value string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &w.history
	for _, marker := range h.versions {
		if !slices.ContainsFunc(h.labels[pod], func(labels map[string]string) bool { return matches(marker, labels) }) {
			continue
		}
		for i := range marker.Spec.Probes {
			probe := &marker.Spec.Probes[i]
			possible := maps.Clone(h.states[pod][token(probe)])
			if possible == nil {
				possible = map[v1alpha1.ProbeState]bool{}
			}
			if h.ended[pod] {
				possible[v1alpha1.ProbeFailed] = true
			}
			stale := probe.StaleAfterSeconds != nil && h.lost[h.nodes[pod]]
			if h.restarted[pod] || stale || exclusiveIn(probe) != nil {
				possible[v1alpha1.ProbeUnknown] = true
			}
			if key.Field == "reason" {
				if probe.PodConditionType == key.Name && (stale && value == v1alpha1.ReasonStale ||
					exclusiveIn(probe) != nil && value == v1alpha1.ReasonClaimLost) {
					return true
				}
				continue
			}
			for state := range possible {
				if oracle.MarksIn(probe, state)[key] == value || w.everPrinted(pod, probe, state, key, value) {
					return true
				}
			}
		}
	}
	return false
}

// checkRelease checks that a manager releases no marker of which its own cache showed a mark when it decided. Marks
// whose keys the last version of the marker does not declare cannot be told from those of other markers.
func (w *world) checkRelease(by string, e event) {
	marker := e.Before.(*v1alpha1.PodProbeMarker) //nolint:forcetypeassert // of this kind
	keys, values := map[field]bool{}, map[string]bool{}
	for i := range marker.Spec.Probes {
		maps.Copy(keys, oracle.Declared(&marker.Spec.Probes[i]))
	}
	for _, version := range w.history.versions {
		if version.UID != marker.UID {
			continue
		}
		for i := range version.Spec.Probes {
			for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown} {
				for key, value := range oracle.MarksIn(&version.Spec.Probes[i], state) {
					values[value] = keys[key] && key.Kind != oracle.Condition
				}
			}
		}
	}
	seen := func(o client.Object) bool {
		pod, isPod := o.(*corev1.Pod)
		if !isPod || oracle.Ended(pod) {
			return false
		}
		for key, value := range actual(pod) {
			if key.Kind != oracle.Condition && values[value] && !w.declaredByOthers(marker.UID, pod, key) {
				w.fail(fmt.Errorf(
					"%s releases marker %s (%s), but pod %s (%s) has %s %s=%q", by, marker.Name, marker.UID, pod.Name, pod.UID, key.Kind, key.Name, value,
				))
				return true
			}
		}
		return false
	}
	for _, m := range w.managers {
		if m.name == by && slices.ContainsFunc(m.seen, seen) {
			return
		}
	}
}

// declaredByOthers reports whether another marker that may select the pod declares the key: as long as nothing is
// known about its probe, the pod keeps what it has.
func (w *world) declaredByOthers(marker types.UID, pod *corev1.Pod, key field) bool {
	return slices.ContainsFunc(w.history.versions, func(other *v1alpha1.PodProbeMarker) bool {
		return other.UID != marker && matches(other, pod.Labels) &&
			slices.ContainsFunc(other.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return oracle.Declared(&p)[key] })
	})
}
