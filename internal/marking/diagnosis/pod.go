// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Input is what the findings about a pod depend on, as far as it could be read.
type Input struct {
	// Pod is the view of the pod, and Options are the settings that it was computed with. Only
	// findings about the plan need its plan.
	Pod     podview.Pod
	Options podview.Options
	// Node is what is stored and reported about the pods of the node.
	Node mark.NodeReport
	// Markers are those of the namespace. Only findings about the plan need them, and the errors of probes if the reports could
	// not be read.
	Markers []*v1alpha1.PodProbeMarker
	// Want is the entry of the pod in the plan of the node as the manager computes it, or nil if it is
	// not known.
	Want *v1alpha1.PodProbe
	// PlanUnread and ReportsUnread are whether these could not be read, so that it means nothing if
	// one is missing. The plan also counts as unread if it is not known whether the node has one.
	PlanUnread, ReportsUnread bool
	// Statuses is whether the pod has the statuses of its containers. Trimmed pods have none.
	Statuses bool
	// Now is the current time. If it is zero, no grace period applies, and no result is due.
	Now time.Time
}

// Pod has the findings about one pod.
type Pod struct {
	in       Input
	provided bool
	waiting  *Finding
	entry    *v1alpha1.PodProbe
	errors   []v1alpha1.ContainerProbeError
}

// New returns the findings about a pod. It evaluates what all probes of the pod share.
func New(in Input) *Pod {
	pod := in.Pod.Object
	d := &Pod{in: in, provided: in.Options.Provided(in.Pod.NodeKind), waiting: OfPod(pod)}
	if d.provided {
		return d
	}
	d.entry, d.errors = Entry(in.Node.Plan, pod), in.Node.Errors(pod.UID)
	if in.ReportsUnread && len(d.errors) == 0 {
		d.errors = errorsInStatus(in.Markers, pod)
	}
	return d
}

// errorsInStatus returns the errors of the probes in the pod that the statuses of the markers have, which are those of the first pods
// of each marker only.
func errorsInStatus(markers []*v1alpha1.PodProbeMarker, pod *corev1.Pod) (found []v1alpha1.ContainerProbeError) {
	for _, m := range markers {
		if m.Namespace != pod.Namespace || m.Status.ObservedGeneration < m.Generation {
			continue
		}
		for _, e := range m.Status.PodErrors {
			if e.Pod == pod.Name {
				id := identity.ID{Marker: m.Name, Probe: e.Probe}
				found = append(found, v1alpha1.ContainerProbeError{Name: id.String(), Reason: e.Reason, Message: e.Message})
			}
		}
	}
	return found
}

// Entry returns the entry of the pod in the plan of its node, which may be nil. It returns nil if there
// is none.
func Entry(npp *v1alpha1.NodePodProbe, pod *corev1.Pod) *v1alpha1.PodProbe {
	if npp == nil {
		return nil
	}
	i := slices.IndexFunc(npp.Spec.PodProbes, func(p v1alpha1.PodProbe) bool { return p.UID == string(pod.UID) })
	if i < 0 {
		return nil
	}
	return &npp.Spec.PodProbes[i]
}

// Probe returns the first finding about the probe, or nil. known is whether the reader knows a state
// of it.
func (d *Pod) Probe(p plan.PlannedProbe, known bool) *Finding {
	if d.waiting != nil {
		return d.waiting
	}
	// An error is that of a probe which the plan has. It explains more than a plan that does not run.
	for _, find := range []func(plan.PlannedProbe) *Finding{d.planned, d.failed, d.running} {
		if f := find(p); f != nil {
			return f
		}
	}
	if known {
		return nil
	}
	return d.noState(p)
}

// Plan returns the finding about the plan of the node, as far as the probe depends on it, or nil.
func (d *Pod) Plan(p plan.PlannedProbe) *Finding {
	if f := d.planned(p); f != nil {
		return f
	}
	return d.running(p)
}

// Report returns the finding about what is reported for the probe, or nil.
func (d *Pod) Report(p plan.PlannedProbe) *Finding {
	if f := d.failed(p); f != nil {
		return f
	}
	if _, known := d.in.Pod.Report.State(p); known {
		return nil
	}
	return d.noState(p)
}

// planned returns why the plan of the node does not have the probe, or nil if it does.
func (d *Pod) planned(p plan.PlannedProbe) *Finding {
	npp, pod := d.in.Node.Plan, d.in.Pod.Object
	switch {
	case d.provided, npp == nil && d.in.PlanUnread:
		return nil
	case npp == nil:
		return Finding{Reason: NoPlan, Node: pod.Spec.NodeName}.after(d.Changed(), Settle, d.in.Now)
	case has(d.entry, p.Plan):
		if d.outdated() {
			return Finding{Reason: PlanOutdated}.after(d.Changed(), Settle, d.in.Now)
		}
		return nil
	case plan.AwaitsAddress(pod, d.in.Pod.Plan.Probes):
		return Finding{Reason: NoAddress}.after(d.Changed(), Settle, d.in.Now)
	default:
		return Finding{Reason: NotPlanned}.after(d.Changed(), Settle, d.in.Now)
	}
}

// has reports whether the entry of a pod, which may be nil, has the probe.
func has(entry *v1alpha1.PodProbe, probe v1alpha1.ContainerProbe) bool {
	return entry != nil && slices.ContainsFunc(entry.Probes, func(c v1alpha1.ContainerProbe) bool {
		return c.Name == probe.Name && identity.SamePlan(c.Plan, probe.Plan)
	})
}

// outdated reports whether the entry of the pod differs from what it should be, although it has all
// probes.
func (d *Pod) outdated() bool {
	missing := func(c v1alpha1.ContainerProbe) bool { return !has(d.entry, c) }
	return d.in.Want != nil && !slices.ContainsFunc(d.in.Want.Probes, missing) && !equality.Semantic.DeepEqual(d.entry, d.in.Want)
}

// running returns why the agent does not run the plan, or nil if it does.
func (d *Pod) running(plan.PlannedProbe) *Finding {
	if d.provided {
		return nil
	}
	return OfAgent(d.in.Node.Plan, d.in.Now)
}

// OfAgent returns why the agent does not run the plan of its node, which may be nil. It returns nil if
// it does, or if this is not known: agents of OpenKruise do not report which plan they run.
func OfAgent(npp *v1alpha1.NodePodProbe, now time.Time) *Finding {
	if npp == nil || npp.Status.ObservedGeneration >= npp.Generation || mark.InStatus(npp) && npp.Status.ObservedGeneration == 0 {
		return nil
	}
	f := Finding{Reason: PlanNotRunning, Planned: npp.Generation, Running: npp.Status.ObservedGeneration}
	return f.after(podview.Edited(npp), Settle, now)
}

// failed returns the reported error of the probe, or nil.
func (d *Pod) failed(p plan.PlannedProbe) *Finding {
	for i := range d.errors {
		if d.errors[i].Name == p.Plan.Name {
			return OfError(d.errors[i])
		}
	}
	return nil
}

// Changed returns when the plan of the pod last had to change.
func (d *Pod) Changed() time.Time {
	pod := d.in.Pod.Object
	last := podview.Edited(pod)
	for _, c := range pod.Status.Conditions {
		if (c.Type == corev1.PodInitialized || c.Type == corev1.PodScheduled) && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	for _, marker := range d.in.Markers {
		if at := podview.Edited(marker); at.After(last) {
			last = at
		}
	}
	return last
}
