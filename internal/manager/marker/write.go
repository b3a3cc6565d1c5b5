// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxNote is the maximum number of bytes of a condition's message in an event.
const maxNote = 1000

// update adds the finalizer to the marker, or writes the status if the marker has it. It reports
// whether it sent a request. found are the problems of the marker, or nil if it does not compile.
func (r *Reconciler) update(ctx context.Context, marker *v1alpha1.PodProbeMarker, found *summary) (wrote bool, err error) {
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return r.hold(ctx, marker)
	}
	if found == nil {
		_, err := r.Reader.Compiler.Compile(marker)
		return r.writeStatus(ctx, marker, 0, []finding{invalid(err), (&summary{}).exclusive(nil), r.applied(marker)})
	}
	found.addShortages(r.Shortages.Of(client.ObjectKeyFromObject(marker)))
	return r.writeStatus(ctx, marker, found.matched, append(found.findings(marker), r.applied(marker)))
}

// writeStatus writes the status if it changes, and reports new problems in events. It reports
// whether it sent a request.
func (r *Reconciler) writeStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker, matched int, findings []finding) (wrote bool, err error) {
	key := client.ObjectKeyFromObject(marker)
	last, _ := r.checks.Get(key)
	current, unseen := r.recent.Unseen(key, marker.UID, marker.ResourceVersion)
	if !unseen {
		current = marker.Status
		if len(current.Conditions) == 0 {
			current.Conditions = last.dropped
		}
	}
	status := next(current, marker.Generation, matched, findings, r.Now())
	if same(current, status) {
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
	r.recent.Wrote(key, marker.UID, stored.ResourceVersion, status)
	r.Metrics.StatusWritten()
	for _, f := range news(current, last.causes, findings) {
		r.Recorder.Event(marker, corev1.EventTypeWarning, f.Reason, short(f.Message))
		log.FromContext(ctx).Info("Marker has a problem", "marker", key, "condition", f.Type, "reason", f.Reason, "message", f.Message)
	}
	return true, nil
}

// hold adds the finalizer. The write makes the marker due again, for its status. Other events may
// do so before the cache has the write, and then hold does not repeat it.
func (r *Reconciler) hold(ctx context.Context, marker *v1alpha1.PodProbeMarker) (wrote bool, err error) {
	key := client.ObjectKeyFromObject(marker)
	if _, unseen := r.held.Unseen(key, marker.UID, marker.ResourceVersion); unseen {
		return false, nil
	}
	held := marker.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.PodProbeMarkerFinalizer)
	version, err := r.Markers.Finalizers(ctx, marker, held.Finalizers)
	if err == nil {
		r.held.Wrote(key, marker.UID, version, struct{}{})
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

// short truncates the message to maxNote bytes at a character boundary.
func short(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return text.Truncate(message, maxNote) + "..."
}
