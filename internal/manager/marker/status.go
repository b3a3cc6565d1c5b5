// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/counts"
	"github.com/seamark-dev/seamark/internal/program/isolate"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// interval is the minimum time between two checks or counts of one generation of a marker: pods that
// change one after the other cause at most one status write in two seconds.
const interval = 2 * time.Second

// finding is a condition of a marker.
type finding struct {
	metav1.Condition
	// cause lists the problems that make the condition False. Unlike the message, it does
	// not depend on how many pods have them.
	cause string
}

// next returns the status that follows the current one at the time now.
func next(current v1alpha1.PodProbeMarkerStatus, generation int64, matched int, findings []finding, now time.Time) v1alpha1.PodProbeMarkerStatus {
	status := v1alpha1.PodProbeMarkerStatus{
		ObservedGeneration: generation,
		MatchedPods:        int64(matched),
		Conditions:         slices.Clone(current.Conditions),
	}
	if matched > 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionPodsMatched)
	}
	for _, f := range findings {
		f.ObservedGeneration = generation
		f.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		meta.SetStatusCondition(&status.Conditions, f.Condition)
	}
	return status
}

// news returns the findings that are False and were not so before, or had another reason or
// cause. A change in the number of affected pods is not news. After a restart of the manager
// the cause of a stored problem is unknown, and only the status and the reason count. That a marker has no pods is not news:
// workloads are scaled to zero.
func news(before v1alpha1.PodProbeMarkerStatus, causes map[string]string, findings []finding) []finding {
	var fresh []finding
	for _, f := range findings {
		if f.Status != metav1.ConditionFalse || f.Type == v1alpha1.ConditionPodsMatched {
			continue
		}
		old := meta.FindStatusCondition(before.Conditions, f.Type)
		cause := causes[f.Type]
		if old == nil || old.Status != metav1.ConditionFalse || old.Reason != f.Reason || cause != "" && cause != f.cause {
			fresh = append(fresh, f)
		}
	}
	return fresh
}

// check is what is remembered of the last check of a marker.
type check struct {
	uid        types.UID
	generation int64
	at         time.Time
	// causes are those of the last findings that are in the status, by condition type.
	causes map[string]string
	// matched and findings are the result of the last check, for counts until the next one.
	matched  int
	findings []finding
	// dropped are the conditions last written to an API server whose CRD does not have them.
	dropped []metav1.Condition
}

// checks holds the last check of each marker.
type checks struct {
	keyed.Store[types.NamespacedName, check]
}

// wait returns how long the next check of the marker has to wait. If it returns zero, it
// remembers that the check takes place now.
func (c *checks) wait(key types.NamespacedName, uid types.UID, generation int64, now time.Time) time.Duration {
	var wait time.Duration
	c.change(key, func(last *check) {
		if last.uid != uid {
			*last = check{uid: uid}
		}
		if last.generation == generation {
			wait = max(0, last.at.Add(interval).Sub(now))
		}
		if wait == 0 {
			last.generation, last.at = generation, now
		}
	})
	return wait
}

// reported remembers the causes of the findings that are in the marker's status.
func (c *checks) reported(key types.NamespacedName, findings []finding) {
	causes := make(map[string]string, len(findings))
	for _, f := range findings {
		causes[f.Type] = f.cause
	}
	c.change(key, func(last *check) { last.causes = causes })
}

// retry permits the next check at once, because this one could not be completed.
func (c *checks) retry(key types.NamespacedName) {
	c.change(key, func(last *check) { last.at = time.Time{} })
}

func (c *checks) change(key types.NamespacedName, change func(*check)) {
	c.Update(key, func(last *check) bool {
		change(last)
		return true
	})
}

// update adds the finalizer to the marker, or writes the status if the marker has it. It reports
// whether it sent a request. found are the problems of the marker, or nil if it does not compile.
func (r *Reconciler) update(ctx context.Context, marker *v1alpha1.PodProbeMarker, found *summary, counted *counts.Counts) (wrote bool, err error) {
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return r.hold(ctx, marker)
	}
	if found == nil {
		_, err := r.Reader.Compiler.Compile(marker)
		return r.writeInvalid(ctx, marker, []finding{invalid(err), (&summary{}).exclusive(nil), r.applied(marker)})
	}
	findings := found.findings(marker)
	r.checks.change(client.ObjectKeyFromObject(marker), func(last *check) { last.matched, last.findings = found.matched, findings })
	return r.writeStatus(ctx, marker, found.matched, append(slices.Clip(findings), r.applied(marker)), counted)
}

// writeInvalid writes the status of a marker that does not compile. API servers refuse that of one whose values have the
// wrong types for the rules of the CRD: then an event alone reports it, and the next change of the marker is the next
// attempt.
func (r *Reconciler) writeInvalid(ctx context.Context, marker *v1alpha1.PodProbeMarker, findings []finding) (wrote bool, err error) {
	wrote, err = r.writeStatus(ctx, marker, 0, findings, nil)
	if !apierrors.IsInvalid(err) || isolate.Of(marker) == nil {
		return wrote, err
	}
	key := client.ObjectKeyFromObject(marker)
	last, _ := r.checks.Get(key)
	for _, f := range news(marker.Status, last.causes, findings) {
		if last.causes[f.Type] != f.cause {
			r.Recorder.Event(marker, corev1.EventTypeWarning, f.Reason, text.Message(f.Message))
		}
	}
	r.checks.reported(key, findings)
	return wrote, nil
}

// writeStatus writes the status if it changes, and reports new problems in events. It reports
// whether it sent a request. counted may be nil.
func (r *Reconciler) writeStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker, matched int, findings []finding, counted *counts.Counts,
) (wrote bool, err error) {
	key := client.ObjectKeyFromObject(marker)
	last, _ := r.checks.Get(key)
	current, unseen := r.expectedStatuses.Pending(key, marker.UID, marker.ResourceVersion)
	if !unseen {
		current = marker.Status
		if len(current.Conditions) == 0 {
			current.Conditions = last.dropped
		}
	}
	status := next(current, marker.Generation, matched, findings, r.Now())
	// A CRD without conditions has no counts either.
	if counted != nil && last.dropped == nil {
		counted.Fill(&status)
	}
	if equality.Semantic.DeepEqual(current, status) {
		r.checks.reported(key, findings)
		return false, nil
	}
	if unseen {
		// The write would be a conflict. The marker is due again when the cache has the last one.
		r.checks.retry(key)
		return false, nil
	}
	stored, err := r.Markers.Status(ctx, marker, status)
	if err = outdated(err); err != nil || stored == nil {
		r.checks.retry(key)
		return true, err
	}
	if len(stored.Status.Conditions) == 0 {
		r.checks.change(key, func(last *check) { last.dropped = status.Conditions })
	}
	r.checks.reported(key, findings)
	r.expectedStatuses.Expect(key, marker.UID, stored.ResourceVersion, status)
	r.Metrics.StatusWritten()
	for _, f := range news(current, last.causes, findings) {
		r.Recorder.Event(marker, corev1.EventTypeWarning, f.Reason, text.Message(f.Message))
		log.FromContext(ctx).Info("Marker has a problem", "marker", key, "condition", f.Type, "reason", f.Reason, "message", f.Message)
	}
	return true, nil
}

// hold adds the finalizer. The write makes the marker due again, for its status. Other events may
// do so before the cache has the write, and then hold does not repeat it.
func (r *Reconciler) hold(ctx context.Context, marker *v1alpha1.PodProbeMarker) (wrote bool, err error) {
	key := client.ObjectKeyFromObject(marker)
	if _, unseen := r.expectedFinalizers.Pending(key, marker.UID, marker.ResourceVersion); unseen {
		return false, nil
	}
	held := marker.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.PodProbeMarkerFinalizer)
	version, err := r.Markers.Finalizers(ctx, marker, held.Finalizers)
	if err == nil {
		r.expectedFinalizers.Expect(key, marker.UID, version, struct{}{})
	}
	return true, outdated(err)
}

// unhold removes the finalizer.
func (r *Reconciler) unhold(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	released := marker.DeepCopy()
	controllerutil.RemoveFinalizer(released, v1alpha1.PodProbeMarkerFinalizer)
	if _, err := r.Markers.Finalizers(ctx, marker, released.Finalizers); err != nil {
		return outdated(err)
	}
	log.FromContext(ctx).V(logging.Writes).Info("Released marker", "marker", client.ObjectKeyFromObject(marker))
	return nil
}

const (
	reasonApplied = "Applied"
	reasonRefused = "WriteRefused"
	reasonLimited = "WritesLimited"
	reasonValue   = "ValueRefused"
	reasonWaiting = "ExclusiveWaiting"

	// startup is the time after the start in which a stored problem is kept of which not all pods are
	// known: the controller that writes the marks has yet to find the problem again.
	startup = time.Minute
)

// applied returns the condition about pods that do not have all marks of the marker.
func (r *Reconciler) applied(marker *v1alpha1.PodProbeMarker) finding {
	if r.grace(marker) > 0 {
		return finding{Condition: *meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionMarksApplied)}
	}
	return applied(r.Problems.OfMarker(client.ObjectKeyFromObject(marker)))
}

// grace returns how long the problem that an earlier manager stored is kept although no pod has it, or only
// some of the pods that had it.
func (r *Reconciler) grace(marker *v1alpha1.PodProbeMarker) time.Duration {
	left := r.started().Add(startup).Sub(r.Now())
	key := client.ObjectKeyFromObject(marker)
	last, _ := r.checks.Get(key)
	stored := meta.FindStatusCondition(marker.Status.Conditions, v1alpha1.ConditionMarksApplied)
	if left <= 0 || stored == nil || stored.Status != metav1.ConditionFalse || last.causes[v1alpha1.ConditionMarksApplied] != "" {
		return 0
	}
	if found := applied(r.Problems.OfMarker(key)); found.Status == metav1.ConditionFalse && (found.Reason != stored.Reason || found.Message == stored.Message) {
		return 0
	}
	return left
}

// applied returns the condition, given the problems by pod.
func applied(byPod map[types.NamespacedName]problems.Mark) finding {
	if len(byPod) == 0 {
		none := fine(v1alpha1.ConditionMarksApplied, reasonApplied, "All marks are written.")
		none.cause = "none" // Unlike a stored problem, it is the result of a check.
		return none
	}
	limited := make(map[problems.Limit]pods)
	refused, values, waiting := make(map[string]pods), make(map[string]pods), make(map[string]pods)
	for pod, problem := range byPod {
		if problem.Limited != "" {
			limited[problem.Limited] = limited[problem.Limited].with(pod.Name)
		}
		for probe, reason := range problem.Refused {
			refused[probe] = refused[probe].reporting(pod.Name, reason)
		}
		for probe, blocker := range problem.Waiting {
			waiting[probe] = waiting[probe].reporting(pod.Name, blocker)
		}
		for key, reason := range problem.Values {
			values[key] = values[key].reporting(pod.Name, reason)
		}
	}
	var cause, sentences []string
	for _, probe := range slices.Sorted(maps.Keys(refused)) {
		p := refused[probe]
		cause = append(cause, "refused "+probe)
		sentences = append(sentences, fmt.Sprintf("Probe %q: the API server refuses its marks (pods: %d, such as %s): %s.",
			probe, p.count, p.example, p.detail))
	}
	reason := reasonRefused
	switch {
	case len(refused) > 0:
	case len(limited) > 0:
		reason = reasonLimited
	case len(waiting) > 0:
		reason = reasonWaiting
	default:
		reason = reasonValue
	}
	for _, limit := range slices.Sorted(maps.Keys(limited)) {
		p := limited[limit]
		cause = append(cause, "limited by "+string(limit))
		sentences = append(sentences, fmt.Sprintf("Writes of marks are limited (pods: %d, such as %s), because the marks %s: %s.",
			p.count, p.example, limit.Cause(), advice(limit)))
	}
	for _, probe := range slices.Sorted(maps.Keys(waiting)) {
		p := waiting[probe]
		cause = append(cause, "waiting "+probe)
		sentences = append(sentences, fmt.Sprintf("Probe %q: pods wait for its exclusive marks (pods: %d, such as %s): %s.",
			probe, p.count, p.example, p.detail))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		p := values[key]
		class, _, _ := strings.Cut(p.detail, ":")
		cause = append(cause, "value of "+key+" "+class)
		sentences = append(sentences, fmt.Sprintf("%s is not set (pods: %d, such as %s): %s.", upper(key), p.count, p.example, p.detail))
	}
	return wrong(v1alpha1.ConditionMarksApplied, reason, fmt.Sprint(cause), text.Truncate(strings.Join(sentences, " "), maxMessage))
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// advice says how to find the cause of the limit.
func advice(limit problems.Limit) string {
	if limit == problems.LimitRate {
		return "check whether a probe changes its state as often, or whether another client changes the same keys"
	}
	return "check whether another marker or client changes the same keys, or labels that select the pods"
}
