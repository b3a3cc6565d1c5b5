// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// NodeReport contains what is reported about the pods of one node.
type NodeReport struct {
	// Plan is the node's NodePodProbe, or nil if there is none.
	Plan *v1alpha1.NodePodProbe
	// Slices are the node's ProbeReports, in any order.
	Slices []*seamarkv1alpha1.ProbeReport
	// Outage is since when the states are not current.
	Outage staleness.Outage
}

// InStatus reports whether the states of a node's pods are those in the status of its
// NodePodProbe, which may be nil, and not those in ProbeReports: the daemon of OpenKruise wrote them. It
// replaces the status, and so removes probeReports.
func InStatus(npp *v1alpha1.NodePodProbe) bool {
	return npp != nil && !npp.Status.ProbeReports && len(npp.Status.PodProbeStatuses) > 0
}

// InStatus reports whether the states are those in the status of the NodePodProbe.
func (r NodeReport) InStatus() bool { return InStatus(r.Plan) }

// OfPod returns the part of the report that is about the pod with the UID. It omits states whose
// name is not that of a probe.
func (r NodeReport) OfPod(pod types.UID) PodReport {
	found, known := r.entry(pod)
	if !known {
		return PodReport{Reported: r.InStatus()}
	}
	return ReportOf(found.States)
}

// ReportOf returns the report with the states, as OfPod does.
func ReportOf(states []v1alpha1.ContainerProbeState) PodReport {
	report := PodReport{Reported: true, States: make(States, len(states))}
	for _, state := range states {
		if id, err := identity.Parse(state.Name); err == nil {
			report.States[id] = state
		}
	}
	return report
}

// entry returns the entry of the pod that takes effect. A pod on a full node is found among more
// than a hundred, so nothing is allocated for the others.
func (r NodeReport) entry(pod types.UID) (found entry, known bool) {
	for _, e := range r.entries(string(pod)) {
		if !known || e.Precedes(found.Entry) {
			found, known = e, true
		}
	}
	return found, known
}

// States returns the reported states by the UID of the pod.
func (r NodeReport) States() map[string][]v1alpha1.ContainerProbeState {
	states := make(map[string][]v1alpha1.ContainerProbeState)
	r.Each(func(pod string, reported []v1alpha1.ContainerProbeState, _ []v1alpha1.ContainerProbeError) {
		states[pod] = reported
	})
	return states
}

// Each calls do with the UID of each pod, and its states and errors that take effect.
func (r NodeReport) Each(do func(pod string, states []v1alpha1.ContainerProbeState, errs []v1alpha1.ContainerProbeError)) {
	entries := make(map[string]entry)
	for uid, e := range r.entries("") {
		if other, known := entries[uid]; !known || e.Precedes(other.Entry) {
			entries[uid] = e
		}
	}
	for uid, e := range entries {
		do(uid, e.States, e.errors)
	}
}

// entry is what one object reports about a pod.
type entry struct {
	report.Entry
	errors []v1alpha1.ContainerProbeError
}

// entries returns the entries of the pod with the UID, or of all pods if it is empty, with the UIDs.
func (r NodeReport) entries(uid string) iter.Seq2[string, entry] {
	if r.InStatus() {
		return entriesInStatus(r.Plan, uid)
	}
	return func(yield func(string, entry) bool) {
		for _, slice := range r.Slices {
			for j := range slice.Pods {
				pod := &slice.Pods[j]
				if uid != "" && uid != pod.UID {
					continue
				}
				number, valid := seamarkv1alpha1.SliceNumber(slice.NodeName, slice.Name)
				if !valid {
					number = report.Unnumbered
				}
				if !yield(pod.UID, entry{Entry: report.Entry{Number: number, States: pod.Probes}, errors: pod.Errors}) {
					return
				}
			}
		}
	}
}

// entriesInStatus returns the entries in the status of the NodePodProbe.
func entriesInStatus(npp *v1alpha1.NodePodProbe, uid string) iter.Seq2[string, entry] {
	return func(yield func(string, entry) bool) {
		for i := range npp.Status.PodProbeStatuses {
			pod := &npp.Status.PodProbeStatuses[i]
			if uid != "" && uid != pod.UID {
				continue
			}
			if !yield(pod.UID, entry{Entry: report.Entry{Number: report.Unnumbered, States: pod.ProbeStates}}) {
				return
			}
		}
	}
}

// StatusReports returns the entries of the pods in a status, in the form of a ProbeReport.
func StatusReports(npp *v1alpha1.NodePodProbe) []seamarkv1alpha1.PodReport {
	var pods []seamarkv1alpha1.PodReport
	for _, pod := range npp.Status.PodProbeStatuses {
		pods = append(pods, seamarkv1alpha1.PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Probes: pod.ProbeStates,
		})
	}
	return pods
}

// Changed returns the pods whose states differ between two versions of one object, each once.
func Changed(before, after []seamarkv1alpha1.PodReport) []types.NamespacedName {
	old := make(map[string]*seamarkv1alpha1.PodReport, len(before))
	for i := range before {
		old[before[i].UID] = &before[i]
	}
	var changed []types.NamespacedName
	seen := make(map[types.NamespacedName]bool)
	add := func(pod *seamarkv1alpha1.PodReport) {
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		if !seen[name] {
			seen[name] = true
			changed = append(changed, name)
		}
	}
	for i := range after {
		previous, known := old[after[i].UID]
		if !known || !equality.Semantic.DeepEqual(previous.Probes, after[i].Probes) {
			add(&after[i])
		}
		delete(old, after[i].UID)
	}
	for i := range before {
		if old[before[i].UID] != nil {
			add(&before[i])
		}
	}
	return changed
}

// MaxErrorBytes is the maximum number of bytes of the message of a reported error.
const MaxErrorBytes = 256

// Errors returns the errors that are reported for the probes of the pod with the UID, in the entry
// whose states take effect. A reason that is unknown, such as that of a later agent, is
// ProbeCannotRun, and longer messages are truncated: whoever can write reports writes neither the
// reasons nor the text of conditions.
func (r NodeReport) Errors(pod types.UID) []v1alpha1.ContainerProbeError {
	found, _ := r.entry(pod)
	if len(found.errors) == 0 {
		return nil
	}
	errs := slices.Clone(found.errors)
	for i := range errs {
		errs[i] = Sanitize(errs[i])
	}
	return errs
}

// Sanitize returns the error with a known reason, and with valid text of at most MaxErrorBytes.
func Sanitize(e v1alpha1.ContainerProbeError) v1alpha1.ContainerProbeError {
	if !slices.Contains(v1alpha1.ProbeErrorReasons(), e.Reason) {
		e.Reason = v1alpha1.ProbeCannotRun
	}
	e.Message = text.Truncate(e.Message, MaxErrorBytes)
	return e
}

// ChangedErrors returns the markers whose errors differ between two versions of one object, each
// once and ordered by namespace and name.
func ChangedErrors(before, after []seamarkv1alpha1.PodReport) []types.NamespacedName {
	changed := sets.New[types.NamespacedName]()
	for one := range errorsIn(before).SymmetricDifference(errorsIn(after)) {
		if id, err := identity.Parse(one.Name); err == nil {
			changed.Insert(types.NamespacedName{Namespace: one.namespace, Name: id.Marker})
		}
	}
	return slices.SortedFunc(maps.Keys(changed), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// ChangedStates returns the namespaces and names of the markers whose states differ between two
// versions of one object, each once, or are reported for other pods. It ignores messages and the times
// of runs.
func ChangedStates(before, after []seamarkv1alpha1.PodReport) []types.NamespacedName {
	changed := sets.New[types.NamespacedName]()
	for one := range statesIn(before).SymmetricDifference(statesIn(after)) {
		if id, err := identity.Parse(one.name); err == nil {
			changed.Insert(types.NamespacedName{Namespace: one.namespace, Name: id.Marker})
		}
	}
	return changed.UnsortedList()
}

// podState is the state of a probe in a pod since a time.
type podState struct {
	namespace, uid, name, plan string
	state                      v1alpha1.ProbeState
	since                      int64
}

func statesIn(pods []seamarkv1alpha1.PodReport) sets.Set[podState] {
	states := sets.New[podState]()
	for i := range pods {
		for _, s := range pods[i].Probes {
			states.Insert(podState{pods[i].Namespace, pods[i].UID, s.Name, s.Plan, s.State, s.LastTransitionTime.Unix()})
		}
	}
	return states
}

// podError is an error of a pod.
type podError struct {
	namespace, uid string
	v1alpha1.ContainerProbeError
}

func errorsIn(pods []seamarkv1alpha1.PodReport) sets.Set[podError] {
	errs := sets.New[podError]()
	for i := range pods {
		for _, e := range pods[i].Errors {
			errs.Insert(podError{pods[i].Namespace, pods[i].UID, e})
		}
	}
	return errs
}
