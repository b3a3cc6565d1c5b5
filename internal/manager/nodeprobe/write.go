// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// eventPlanTooLarge is the reason of the event on a node whose plan does not fit into its NodePodProbe.
const eventPlanTooLarge = "ProbePlanTooLarge"

// write stores the plan of the node. It returns when to try again what the API server did not store,
// zero if there is nothing. The NodePodProbe refers to the ProbePlans only when all of them are
// stored, so that no agent takes a part of the plan for the whole when the plan moves there.
func (r *Reconciler) write(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) (retry time.Duration, err error) {
	if npp != nil && !readsSlices(npp) {
		return r.replace(ctx, npp, spec)
	}
	stored, settled, err := r.newest(ctx, node.Name)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, slice := range slicing.Place(spec.PodProbes, stored, node.UID) {
		wait, err := r.writeSlice(ctx, node, slice)
		if err != nil {
			failed = append(failed, err)
		}
		if settled = settled && wait > 0; wait > 0 && (retry == 0 || wait < retry) {
			retry = wait
		}
	}
	// The events of what was written enqueue the node again. There may be none of a ProbePlan that is
	// deleted at once.
	if _, creating := r.created.Get(node.Name); creating && retry == 0 {
		retry = createdFor
	}
	if !settled || len(failed) > 0 {
		return retry, errors.Join(failed...)
	}
	return retry, r.refer(ctx, node, npp, stored)
}

// newest returns the ProbePlans of the node as they were last written, and whether the cache has all of
// these writes.
func (r *Reconciler) newest(ctx context.Context, node string) (stored []*seamarkv1alpha1.ProbePlan, settled bool, err error) {
	if stored, err = r.Reader.ProbePlans(ctx, node); err != nil {
		return nil, false, err
	}
	settled = true
	seen := make(map[string]bool, len(stored))
	for i, slice := range stored {
		seen[slice.Name] = true
		if newer, unseen := r.slices.Unseen(slice.Name, slice.UID, slice.ResourceVersion); unseen {
			stored[i], settled = newer, false
		}
	}
	now := r.Now()
	r.created.Update(node, func(created *[]creation) bool {
		*created = slices.DeleteFunc(*created, func(c creation) bool { return seen[c.slice.Name] || !now.Before(c.until) })
		for _, c := range *created {
			stored, settled = append(stored, c.slice), false
		}
		return len(*created) > 0
	})
	return stored, settled, nil
}

// readsSlices reports whether the agent of the node reads ProbePlans, as far as is known: it has said
// so, or no agent has reported on a NodePodProbe that was created for such an agent.
func readsSlices(npp *v1alpha1.NodePodProbe) bool {
	return npp.Status.ProbePlans || slicing.IsSliced(npp) && npp.Status.ObservedGeneration == 0 && len(npp.Status.PodProbeStatuses) == 0
}

// writeSlice writes one ProbePlan. It returns when to try again what the API server did not store.
func (r *Reconciler) writeSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (retry time.Duration, err error) {
	var before []v1alpha1.PodProbe
	operation := metrics.PlanCreated
	if slice.Stored != nil {
		before, operation = slice.Stored.Pods, metrics.PlanReplaced
		if wait := r.unstoredFor(slice.Stored, slice.Pods); wait > 0 {
			return wait, nil
		}
	}
	written, err := r.Plans.WriteSlice(ctx, node, slice)
	if err != nil {
		// The node is enqueued when the cache gets a ProbePlan that exists already.
		return 0, client.IgnoreAlreadyExists(err)
	}
	if slice.Stored != nil && written.ResourceVersion == slice.Stored.ResourceVersion {
		return r.noteUnstored(slice.Stored, slice.Pods), nil
	}
	r.unstored.Forget(written.Name)
	if slice.Stored == nil {
		r.created.Update(node.Name, func(created *[]creation) bool {
			*created = append(*created, creation{slice: written, until: r.Now().Add(createdFor)})
			return true
		})
	}
	r.slices.Wrote(written.Name, written.UID, written.ResourceVersion, written)
	r.Metrics.PlanWritten(operation)
	logChanges(ctx, before, slice.Pods)
	log.FromContext(ctx).V(logging.Writes).Info("Wrote ProbePlan", "name", written.Name, "pods", len(slice.Pods))
	return 0, nil
}

// refer makes the NodePodProbe, which may be nil, refer to the stored ProbePlans.
func (r *Reconciler) refer(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, stored []*seamarkv1alpha1.ProbePlan) error {
	generations := slicing.Generations(stored)
	if npp == nil {
		// The node is enqueued when the cache gets a NodePodProbe that exists already.
		created, err := r.Plans.Create(ctx, node, generations)
		if err != nil {
			return client.IgnoreAlreadyExists(err)
		}
		r.recent.Wrote(node.Name, created.UID, created.ResourceVersion, created.Spec)
		r.Metrics.PlanWritten(metrics.PlanCreated)
		log.FromContext(ctx).V(logging.Writes).Info("Created NodePodProbe")
		return nil
	}
	if _, unseen := r.recent.Unseen(npp.Name, npp.UID, npp.ResourceVersion); unseen || slicing.IsSliced(npp) && slicing.IsComplete(npp, stored) {
		return nil
	}
	version, err := r.Plans.Refer(ctx, npp, generations)
	if err != nil {
		return ignoreGone(err)
	}
	r.recent.Wrote(npp.Name, npp.UID, version, v1alpha1.NodePodProbeSpec{})
	r.Metrics.PlanWritten(metrics.PlanReplaced)
	log.FromContext(ctx).V(logging.Writes).Info("Moved plan to ProbePlans", "pods", len(npp.Spec.PodProbes))
	return nil
}

// replace writes the plan to the NodePodProbe, for an agent that does not read ProbePlans. It returns
// when to try again what the API server did not store.
func (r *Reconciler) replace(ctx context.Context, npp *v1alpha1.NodePodProbe, spec v1alpha1.NodePodProbeSpec) (retry time.Duration, err error) {
	fitted, omitted := slicing.Fit(spec)
	current, unseen := r.recent.Unseen(npp.Name, npp.UID, npp.ResourceVersion)
	if !unseen {
		current = npp.Spec
	}
	if equality.Semantic.DeepEqual(current, fitted) && (unseen || !slicing.IsSliced(npp)) {
		return 0, nil
	}
	if wait := r.unstoredFor(npp, fitted.PodProbes); !unseen && wait > 0 {
		return wait, nil
	}
	version, err := r.Plans.Replace(ctx, npp, fitted)
	if err != nil {
		return 0, ignoreGone(err)
	}
	if version == npp.ResourceVersion {
		return r.noteUnstored(npp, fitted.PodProbes), nil
	}
	r.unstored.Forget(npp.Name)
	r.recent.Wrote(npp.Name, npp.UID, version, fitted)
	r.Metrics.PlanWritten(metrics.PlanReplaced)
	logChanges(ctx, current.PodProbes, fitted.PodProbes)
	log.FromContext(ctx).V(logging.Writes).Info("Replaced plan", "pods", len(fitted.PodProbes))
	if omitted > 0 {
		r.Recorder.Eventf(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: npp.Name, UID: types.UID(npp.Name)},
			corev1.EventTypeWarning, eventPlanTooLarge,
			"The plan has no room for %d of %d pods, whose probes do not run, because the agent of the node is of an earlier release: upgrade it.",
			omitted, len(spec.PodProbes))
	}
	return 0, nil
}

// ignoreGone returns nil if the NodePodProbe no longer exists: its deletion enqueues the node again.
func ignoreGone(err error) error {
	if errors.Is(err, apply.ErrGone) {
		return nil
	}
	return err
}

// unstoredFor returns how long the write of the pods to the object has to wait, because it did not
// change the object before.
func (r *Reconciler) unstoredFor(object client.Object, pods []v1alpha1.PodProbe) time.Duration {
	last, found := r.unstored.Get(object.GetName())
	if !found || last.write != writeOf(object, pods) {
		return 0
	}
	return max(0, last.until.Sub(r.Now()))
}

// noteUnstored records that the write of the pods did not change the object, and returns when to try
// again.
func (r *Reconciler) noteUnstored(object client.Object, pods []v1alpha1.PodProbe) time.Duration {
	r.unstored.Set(object.GetName(), unstored{write: writeOf(object, pods), until: r.Now().Add(unstoredFor)})
	return unstoredFor
}

// logChanges logs what a new plan changes for each pod, at the level of writes: first the pods that were
// removed, then the others that differ, in the order of the plan.
func logChanges(ctx context.Context, before, after []v1alpha1.PodProbe) {
	lines := log.FromContext(ctx).V(logging.Writes)
	if !lines.Enabled() {
		return
	}
	byUID := func(pods []v1alpha1.PodProbe) map[string]*v1alpha1.PodProbe {
		found := make(map[string]*v1alpha1.PodProbe, len(pods))
		for i := range pods {
			found[pods[i].UID] = &pods[i]
		}
		return found
	}
	earlier, later := byUID(before), byUID(after)
	for i := range before {
		if pod := &before[i]; later[pod.UID] == nil {
			lines.Info("Unplanned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID)
		}
	}
	for i := range after {
		pod := &after[i]
		if was := earlier[pod.UID]; was == nil || !equality.Semantic.DeepEqual(was, pod) {
			lines.Info("Planned pod", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "probes", len(pod.Probes))
		}
	}
}
