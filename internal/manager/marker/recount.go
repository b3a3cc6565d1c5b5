// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/counts"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// recountShare is how much longer a namespace pauses after counts than after checks, so that states that
// change all the time take at most a twentieth of one processor per namespace.
const recountShare = 7

// recount updates the counts in the status of the markers, with the findings of their last checks.
func (r *Reconciler) recount(ctx context.Context, _ []*v1alpha1.PodProbeMarker, due []task) (rechecks []appointment, computed time.Duration, err error) {
	start := r.Now()
	var tasks []task
	var counted []*v1alpha1.PodProbeMarker
	for _, t := range due {
		last, _ := r.checks.Get(t.key())
		if t.marker.DeletionTimestamp != nil || !controllerutil.ContainsFinalizer(t.marker, v1alpha1.PodProbeMarkerFinalizer) ||
			last.findings == nil || last.uid != t.marker.UID || last.generation != t.marker.Generation {
			continue // The check of the marker counts, too.
		}
		if wait := r.checks.wait(t.key(), t.marker.UID, t.marker.Generation, start); wait > 0 {
			rechecks = append(rechecks, t.at(start.Add(wait)))
			continue
		}
		tasks, counted = append(tasks, t), append(counted, t.marker)
	}
	byMarker, err := r.count(ctx, counted)
	computed = recountShare * r.Now().Sub(start)
	left, err := r.writeEach(ctx, tasks, start, err, func(t task) (bool, error) {
		last, _ := r.checks.Get(t.key())
		return r.writeStatus(ctx, t.marker, last.matched, append(slices.Clip(last.findings), r.applied(t.marker)), byMarker[t.marker.Name])
	})
	return append(rechecks, left...), computed, err
}

// count counts the states of the pods of the markers, which are of one namespace, by name of the marker.
// It reads the report of each node once, and looks at each state once, however many markers there are.
func (r *Reconciler) count(ctx context.Context, markers []*v1alpha1.PodProbeMarker) (markerCounts, error) {
	byMarker := make(markerCounts, len(markers))
	if len(markers) == 0 {
		return byMarker, nil
	}
	counted := r.Reader.Compiler.All(markers)
	for _, marker := range counted {
		byMarker[marker.Name] = counts.New(marker)
	}
	found, err := r.podsOf(ctx, markers[0].Namespace, counted)
	if err != nil {
		return nil, err
	}
	nodes, pods := sets.New[string](), make(map[string]*corev1.Pod, len(found))
	for _, pod := range found {
		nodes.Insert(pod.Spec.NodeName)
		pods[string(pod.UID)] = pod
	}
	for node := range nodes {
		if err := ctx.Err(); err != nil {
			return nil, err //nolint:wrapcheck // The reconcile ends.
		}
		report, err := r.Reader.NodeReport(ctx, node)
		if err != nil {
			return nil, err
		}
		var failed error
		report.Each(func(uid string, states []v1alpha1.ContainerProbeState, errs []v1alpha1.ContainerProbeError) {
			if pod := pods[uid]; pod != nil && pod.Spec.NodeName == node {
				counted, err := r.counted(ctx, pod, states, byMarker, report.Outage)
				failed = errors.Join(failed, err)
				byMarker.add(counted, states, errs)
				delete(pods, uid)
			}
		})
		if failed != nil {
			return nil, failed
		}
	}
	return byMarker, r.countProvided(ctx, pods, byMarker)
}

// counted returns the pod with its marks, if these matter: while the states of its node are not current, and if one of its states
// becomes stale, or if another pod may have the exclusive marks of a state. If its managed fields cannot be parsed, its states count as
// reported.
func (r *Reconciler) counted(ctx context.Context, pod *corev1.Pod, states []v1alpha1.ContainerProbeState, byMarker markerCounts,
	since staleness.Outage) (counts.Pod, error) {
	counted := counts.Pod{Object: pod, Outage: since}
	contends := byMarker.any(pod, states, func(c *counts.Counts, id identity.ID, state v1alpha1.ProbeState) bool {
		return c.Contends(pod, id, state)
	})
	becomesStale := func(c *counts.Counts, id identity.ID, _ v1alpha1.ProbeState) bool { return c.BecomesStale(id) }
	if !contends && (since.Cause == "" || !byMarker.any(pod, states, becomesStale)) {
		return counted, nil
	}
	owned, err := r.parser.Owned(pod)
	if err != nil {
		return counted, nil //nolint:nilerr // The controller that writes the marks reports it.
	}
	markers, err := r.Reader.MarkersOf(ctx, pod.Namespace, pod.Labels)
	if err != nil {
		return counted, err
	}
	markers = plan.Sorted(markers)
	planned, err := r.Reader.Plan(ctx, pod, markers)
	if err != nil {
		return counted, err
	}
	if contends {
		view := podview.Pod{Object: pod, Plan: planned, Report: mark.ReportOf(states)}
		view.Report.Outage = since
		counted.Held = view.WithTickets(markers).Report.Held
	}
	counted.Claims, _ = mark.Claim(planned.Probes)
	counted.Owned = owned
	return counted, nil
}

// countProvided counts the states of the pods that providers of virtual nodes report.
func (r *Reconciler) countProvided(ctx context.Context, pods map[string]*corev1.Pod, byMarker markerCounts) error {
	if !r.Reader.Serverless {
		return nil
	}
	for _, pod := range pods {
		kind, err := r.Reader.NodeKind(ctx, pod)
		if err != nil {
			return err
		}
		if !r.Reader.Provided(kind) {
			continue
		}
		for _, each := range byMarker {
			if !each.Marker.Selects(pod) {
				continue
			}
			states := slices.Collect(maps.Values(mark.Provided(pod, each.Marker.Probes()).States))
			counted, err := r.counted(ctx, pod, states, byMarker, staleness.Outage{})
			if err != nil {
				return err
			}
			byMarker.add(counted, states, nil)
		}
	}
	return nil
}

// markerCounts are those of the markers of a namespace by name.
type markerCounts map[string]*counts.Counts

// find returns the probe with the reported name and the Counts of its marker, or nil if that does not
// select the pod.
func (t markerCounts) find(pod *corev1.Pod, name string) (identity.ID, *counts.Counts) {
	id, err := identity.Parse(name)
	if each := t[id.Marker]; err == nil && each != nil && each.Marker.Selects(pod) {
		return id, each
	}
	return id, nil
}

// any reports whether is holds for one of the states of the pod.
func (t markerCounts) any(pod *corev1.Pod, states []v1alpha1.ContainerProbeState, is func(*counts.Counts, identity.ID, v1alpha1.ProbeState) bool) bool {
	return slices.ContainsFunc(states, func(state v1alpha1.ContainerProbeState) bool {
		id, each := t.find(pod, state.Name)
		return each != nil && is(each, id, state.State)
	})
}

// add counts the states of a pod.
func (t markerCounts) add(pod counts.Pod, states []v1alpha1.ContainerProbeState, errs []v1alpha1.ContainerProbeError) {
	for _, state := range states {
		if id, each := t.find(pod.Object, state.Name); each != nil {
			each.Add(pod, id, state)
		}
	}
	for _, e := range errs {
		if id, each := t.find(pod.Object, e.Name); each != nil {
			each.AddError(pod.Object.Name, id, e)
		}
	}
}

// touchCounts makes the counts of the markers due.
func (r *Reconciler) touchCounts(q controllers.Queue, namespace string, markers ...string) {
	r.makeDue(q, &r.recounts, namespace, markers)
}
