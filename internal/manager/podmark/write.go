// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// delay returns how long the change must wait because the pod is written too often. It reports
// the start of this with an event.
func (r *Reconciler) delay(ctx context.Context, pod *corev1.Pod, change change) time.Duration {
	key := client.ObjectKeyFromObject(pod)
	wait, first, began := r.limits.wait(key, r.Now(), func() []string {
		return change.declaring(pod, affected.LogError(r.Reader.MarkersOf(ctx, pod.Namespace, pod.Labels))(ctx))
	})
	if first {
		r.Metrics.MarksLimited()
		r.publish(key, change)
	}
	if began != "" {
		set, removed := change.differences()
		keys := strings.Join(names(append(set, removed...)), ", ")
		r.Recorder.Eventf(pod, corev1.EventTypeWarning, v1alpha1.EventReasonMarksLimited,
			"Writes of marks are limited, because they %s: %s.", began.Cause(), keys)
		log.FromContext(ctx).Info("Limited writes of marks to pod", "marks", keys, "cause", began.Cause())
	}
	return wait
}

// publish reports the problems of the pod to the markers that cause them.
func (r *Reconciler) publish(pod types.NamespacedName, change change) {
	byMarker := make(map[types.NamespacedName]problems.Mark)
	limit, limited := r.limits.problem(pod)
	for _, marker := range limited {
		byMarker[types.NamespacedName{Namespace: pod.Namespace, Name: marker}] = problems.Mark{Limited: limit}
	}
	for _, refusal := range append(slices.Clip(change.refused.probes), change.keptBy()...) {
		marker := types.NamespacedName{Namespace: pod.Namespace, Name: refusal.Probe.Marker}
		p := byMarker[marker]
		if p.Refused == nil {
			p.Refused = make(map[string]string)
		}
		p.Refused[refusal.Probe.Probe] = problems.Reason(refusal.Reason)
		byMarker[marker] = p
	}
	for _, v := range change.values {
		marker := types.NamespacedName{Namespace: pod.Namespace, Name: v.Probe.Marker}
		p := byMarker[marker]
		if p.Values == nil {
			p.Values = make(map[string]string)
		}
		p.Values[fmt.Sprintf("probe %q: %s", v.Probe.Probe, v.Key)] = string(v.Refusal.Reason) + ": " + v.Refusal.Detail
		byMarker[marker] = p
	}
	if w, _ := r.waits.Get(pod); w.reported {
		marker := types.NamespacedName{Namespace: pod.Namespace, Name: w.probe.Marker}
		p := byMarker[marker]
		p.Waiting = map[string]string{w.probe.Probe: w.why}
		byMarker[marker] = p
	}
	r.Problems.Set(pod, byMarker)
}

// apply writes the change, without the marks of probes that the API server refuses. It returns
// the change as written.
func (r *Reconciler) apply(ctx context.Context, pod *corev1.Pod, change change) (change, error) {
	key := client.ObjectKeyFromObject(pod)
	version, change, err := r.write(ctx, pod, change)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.forget(key)
		r.Metrics.MarksApplied(metrics.MarkGone)
		return change, nil
	case errors.Is(err, apply.ErrOutdated):
		return change, err
	case err != nil:
		r.Refusals.Note(key, err)
		r.Metrics.MarksApplied(metrics.MarkFailed)
		return change, err
	}
	r.Refusals.Note(key, nil)
	if last := change.refused; !last.isEmpty() {
		last.uid, last.version, last.desired, last.claims = pod.UID, version, change.all, change.claims
		r.refused.Set(key, last)
	}
	if change.isEmpty() {
		return change, nil
	}
	r.expectations.Expect(key, pod.UID, version, change.desired)
	r.Metrics.MarksApplied(metrics.MarkWritten)
	change.log(log.FromContext(ctx).V(logging.Writes))
	return change, nil
}

// write removes the leftover keys before it applies the marks, because an apply also drops
// Seamark's ownership, which identifies them. It returns the pod's resource version and the change
// as written.
func (r *Reconciler) write(ctx context.Context, pod *corev1.Pod, change change) (string, change, error) {
	version := pod.ResourceVersion
	if len(change.leftover) > 0 {
		removed, err := r.Pods.Remove(ctx, pod, change.leftover)
		switch {
		case isRefusal(err):
			if denied := r.Pods.Try(ctx, pod, change.owned); denied != nil {
				return "", change, denied
			}
			r.Metrics.MarksApplied(metrics.MarkRefused)
			log.FromContext(ctx).Info("API server refused removal of marks", "marks", names(change.leftover), "reason", problems.Reason(err))
			change.refused.kept, change.refused.reason = append(slices.Clip(change.refused.kept), change.leftover...), err
			change.leftover = nil
		case err != nil:
			return "", change, err
		default:
			version = removed
			log.FromContext(ctx).V(logging.Writes).Info("Removed marks of other owners from pod", "marks", change.leftover)
		}
	}
	applied, err := r.set(ctx, pod, change, version)
	if isRefusal(err) {
		return r.writeAccepted(ctx, pod, change, version, err)
	}
	return applied, change, err
}

// set applies the desired marks. The version is returned if the pod has them.
func (r *Reconciler) set(ctx context.Context, pod *corev1.Pod, change change, version string) (string, error) {
	if change.desired.Equal(change.owned) {
		return version, nil
	}
	if !change.view.HasExclusive(change.desired) {
		return r.Pods.Marks(ctx, pod, change.desired)
	}
	if version != pod.ResourceVersion {
		return "", apply.ErrOutdated
	}
	return r.Pods.MarksOn(ctx, pod, change.desired)
}

// writeAccepted finds the probes whose marks the API server refuses for the reason, and applies
// the marks of the others. The marks of a refused probe are removed, because they do not match
// its state. Soon after a search, it omits the same probes before it searches again, because a
// search takes many requests. The version is returned if nothing is written.
func (r *Reconciler) writeAccepted(ctx context.Context, pod *corev1.Pod, change change, version string, reason error) (string, change, error) {
	now := r.Now()
	if last, _ := r.refused.Get(client.ObjectKeyFromObject(pod)); last.uid == pod.UID && now.Before(last.until) {
		unmarked := func(refusal mark.Refusal) bool { return len(change.all.OfProbe(change.claims, refusal.Probe)) == 0 }
		if probes := slices.DeleteFunc(slices.Clone(last.probes), unmarked); len(probes) > 0 {
			change = change.omit(probes, last.until, true)
			if applied, err := r.set(ctx, pod, change, version); !isRefusal(err) {
				r.noteRefused(ctx, change, err)
				return applied, change, err
			}
		}
	}
	try := func(marks mark.Marks) (error, error) {
		err := r.Pods.Try(ctx, pod, marks)
		if isRefusal(err) {
			return err, nil
		}
		return nil, err
	}
	_, probes, err := mark.Accepted(change.all, change.claims, change.ids(), reason, try)
	if err != nil {
		return "", change, err
	}
	change = change.omit(probes, now.Add(searchInterval), false)
	applied, err := r.set(ctx, pod, change, version)
	r.noteRefused(ctx, change, err)
	return applied, change, err
}

// noteRefused counts and logs the refused probes of a change that was written, unless err is set.
func (r *Reconciler) noteRefused(ctx context.Context, change change, err error) {
	if err != nil {
		return
	}
	r.Metrics.MarksApplied(metrics.MarkRefused)
	for _, refusal := range change.refused.probes {
		log.FromContext(ctx).Info("API server refused marks of probe", "probe", refusal.Probe, "reason", problems.Reason(refusal.Reason))
	}
}
