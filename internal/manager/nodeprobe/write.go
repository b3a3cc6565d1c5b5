// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// write stores the plan of the node. It returns when to try again what the API server did not store,
// zero if there is nothing. When all changed ProbePlans are stored, one write of the NodePodProbe tells
// the agent, so that a pod that moves from one ProbePlan to another is always planned. A pod that is gone
// costs only this write, until another one takes its place.
func (r *Reconciler) write(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, next compiled) (retry time.Duration, err error) {
	stored, err := r.newest(ctx, node.Name)
	if err != nil {
		return 0, err
	}
	changed, last := slicing.Place(next.PodProbes, stored, node.UID), r.header(npp)
	var planned []v1alpha1.PodProbe
	if npp != nil {
		planned = append(planned, npp.Spec.PodProbes...) // Those of OpenKruise.
	}
	for _, slice := range stored {
		planned = append(planned, slice.Pods...)
	}
	if behind, err := r.behind(ctx, node.Name, planned, next, last.removed); err != nil || behind {
		return behindFor, err
	}
	removes := npp != nil && r.unstoredFor(npp, nil) == 0
	if removes {
		changed = slicing.Defer(changed, node.UID, next.gone)
	}
	references := slicing.References(stored)
	var failed []error
	var missing []int
	for _, slice := range changed {
		written, wait, err := r.writeSlice(ctx, node, slice, last.removed)
		if err != nil {
			failed = append(failed, err)
		}
		retry = earliest.Wait(retry, wait)
		if written != nil {
			references[slice.Number] = written.ResourceVersion
			stored = append(slices.DeleteFunc(stored, func(s *seamarkv1alpha1.ProbePlan) bool { return s == slice.Stored }), written)
		} else if slice.Stored == nil {
			missing = append(missing, slice.Number)
		}
	}
	// The events of what was written enqueue the node again. There may be none of a ProbePlan that is
	// deleted at once.
	if _, creating := r.created.Get(node.Name); creating && retry == 0 {
		retry = createdFor
	}
	var removed []string
	if removes {
		removed = slicing.Removed(stored, next.gone)
	}
	wait, err := r.refer(ctx, node, npp, references, removed, missing)
	if err == nil {
		logRemoved(ctx, stored, last.removed, removed)
	}
	retry = earliest.Wait(retry, wait)
	return retry, errors.Join(append(failed, err)...)
}

// behindFor is how long the plan of a node waits for the pods that the cache does not have yet.
const behindFor = 500 * time.Millisecond

// behind reports whether the cache does not have a pod yet that another manager has planned: a plan that is compiled now
// would lack it. It asks the API server only for planned pods that the cache does not have, and that the NodePodProbe does
// not remove already. The plan may name a pod that runs on another node, if somebody else wrote it: this does not count.
func (r *Reconciler) behind(ctx context.Context, node string, stored []v1alpha1.PodProbe, next compiled, removed []string) (bool, error) {
	var unknown []v1alpha1.PodProbe
	for i := range stored {
		if uid := stored[i].UID; !next.alive.Has(uid) && !next.ending.Has(uid) && !slices.Contains(removed, uid) {
			unknown = append(unknown, stored[i])
		}
	}
	live := make(map[types.UID]*corev1.Pod)
	if len(unknown) > slicing.MaxRemoved {
		var all corev1.PodList
		if err := r.Live.List(ctx, &all, client.MatchingFields{gather.NodeNameField: node}); err != nil {
			return false, fmt.Errorf("list pods of node %s: %w", node, err)
		}
		for i := range all.Items {
			live[all.Items[i].UID] = &all.Items[i]
		}
		unknown = slices.DeleteFunc(unknown, func(pod v1alpha1.PodProbe) bool { return live[types.UID(pod.UID)] == nil })
	}
	for _, planned := range unknown {
		pod := live[types.UID(planned.UID)]
		if pod == nil {
			pod = &corev1.Pod{}
			if err := r.Live.Get(ctx, types.NamespacedName{Namespace: planned.Namespace, Name: planned.Name}, pod); client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("get pod %s/%s: %w", planned.Namespace, planned.Name, err)
			}
		}
		if string(pod.UID) == planned.UID && pod.Spec.NodeName == node && !plan.Ending(pod) {
			return true, nil
		}
	}
	return false, nil
}

// newest returns the ProbePlans of the node as they were last written.
func (r *Reconciler) newest(ctx context.Context, node string) (stored []*seamarkv1alpha1.ProbePlan, err error) {
	if stored, err = r.Reader.ProbePlans(ctx, node); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(stored))
	for i, slice := range stored {
		seen[slice.Name] = true
		if newer, pending := r.expectedPlans.Pending(slice.Name, slice.UID, slice.ResourceVersion); pending {
			stored[i] = newer
		}
	}
	now := r.Now()
	r.created.Update(node, func(created *[]creation) bool {
		*created = slices.DeleteFunc(*created, func(c creation) bool { return seen[c.slice.Name] || !now.Before(c.until) })
		for _, c := range *created {
			newest := c.slice
			if newer, pending := r.expectedPlans.Pending(newest.Name, newest.UID, newest.ResourceVersion); pending {
				newest = newer
			}
			stored = append(stored, newest)
		}
		return len(*created) > 0
	})
	return stored, nil
}

// writeSlice writes one ProbePlan and returns it, or nil if it does not know what is stored. It returns
// when to try again what the API server did not store. The NodePodProbe has removed some of the pods already.
func (r *Reconciler) writeSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice, removed []string) (written *seamarkv1alpha1.ProbePlan, retry time.Duration, err error) {
	var before []v1alpha1.PodProbe
	operation := metrics.PlanCreated
	if slice.Stored != nil {
		operation = metrics.PlanReplaced
		before = slices.DeleteFunc(slices.Clone(slice.Stored.Pods), func(pod v1alpha1.PodProbe) bool { return slices.Contains(removed, pod.UID) })
		if wait := r.unstoredFor(slice.Stored, slice.Pods); wait > 0 {
			return slice.Stored, wait, nil
		}
	}
	written, err = r.Plans.WriteSlice(ctx, node, slice)
	if err != nil {
		// The node is enqueued when the cache gets a ProbePlan that exists already.
		return nil, 0, client.IgnoreAlreadyExists(err)
	}
	if slice.Stored != nil && written.ResourceVersion == slice.Stored.ResourceVersion {
		return written, r.noteUnstored(slice.Stored, slice.Pods), nil
	}
	r.unstored.Forget(written.Name)
	if slice.Stored == nil {
		r.created.Update(node.Name, func(created *[]creation) bool {
			*created = append(*created, creation{slice: written, until: r.Now().Add(createdFor)})
			return true
		})
	}
	r.expectedPlans.Expect(written.Name, written.UID, written.ResourceVersion, written)
	r.Metrics.PlanWritten(operation)
	logChanges(ctx, before, slice.Pods)
	log.FromContext(ctx).V(logging.Writes).Info("Wrote ProbePlan", "name", written.Name, "pods", len(slice.Pods))
	return written, 0, nil
}

// header is what a NodePodProbe says about the ProbePlans.
type header struct {
	// sliced is whether the NodePodProbe refers to ProbePlans. It is false if it has the plan of OpenKruise.
	sliced     bool
	references string
	// removed are the UIDs of pods that are still in ProbePlans and not planned any more.
	removed []string
}

// header returns what the NodePodProbe, which may be nil, says after the last write.
func (r *Reconciler) header(npp *v1alpha1.NodePodProbe) header {
	if npp == nil {
		return header{}
	}
	if last, pending := r.expectedHeaders.Pending(npp.Name, npp.UID, npp.ResourceVersion); pending {
		return last
	}
	return header{sliced: slicing.IsSliced(npp), references: npp.Annotations[v1alpha1.ProbePlansAnnotationKey], removed: npp.Spec.RemovedPods}
}

// refer makes the NodePodProbe, which may be nil, refer to the ProbePlans. Those that are missing could
// not be created. They keep the reference to what was deleted, which the agent still runs. A
// NodePodProbe of OpenKruise refers to ProbePlans only when none is missing. refer returns when to look whether
// the API server has stored the removed pods, zero for never.
func (r *Reconciler) refer(ctx context.Context, node *metav1.PartialObjectMetadata, npp *v1alpha1.NodePodProbe, references map[int]string, removed []string, missing []int) (wait time.Duration, err error) {
	last := r.header(npp)
	if !last.sliced && len(missing) > 0 {
		return 0, nil
	}
	before, _ := slicing.ParseReferences(last.references)
	for _, number := range missing {
		if version, referred := before[number]; referred {
			references[number] = version
		}
	}
	next := header{sliced: true, references: slicing.FormatReferences(references), removed: removed}
	if npp == nil {
		// The node is enqueued when the cache gets a NodePodProbe that exists already.
		created, err := r.Plans.Create(ctx, node, next.references)
		if err != nil {
			return 0, client.IgnoreAlreadyExists(err)
		}
		r.expectedHeaders.Expect(node.Name, created.UID, created.ResourceVersion, next)
		r.Metrics.PlanWritten(metrics.PlanCreated)
		log.FromContext(ctx).V(logging.Writes).Info("Created NodePodProbe")
		return 0, nil
	}
	if last.sliced && last.references == next.references && slices.Equal(last.removed, removed) {
		return 0, nil
	}
	version, err := r.Plans.Refer(ctx, npp, next.references, removed)
	if err != nil {
		return 0, ignoreGone(err)
	}
	r.expectedHeaders.Expect(npp.Name, npp.UID, version, next)
	if version == npp.ResourceVersion && len(removed) > 0 {
		r.noteUnstored(npp, nil)
		return afterPod().idle, nil
	}
	r.Metrics.PlanWritten(metrics.PlanReferred)
	log.FromContext(ctx).V(logging.Writes).Info("Referred to ProbePlans", "references", next.references, "removedPods", removed)
	if len(removed) > 0 {
		// The version may be that of another write, which the cache does not have yet.
		wait = createdFor
	}
	return wait, nil
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

// logRemoved logs the pods that the NodePodProbe removes and did not remove before.
func logRemoved(ctx context.Context, stored []*seamarkv1alpha1.ProbePlan, before, removed []string) {
	for _, slice := range stored {
		var gone []v1alpha1.PodProbe
		for i := range slice.Pods {
			if uid := slice.Pods[i].UID; slices.Contains(removed, uid) && !slices.Contains(before, uid) {
				gone = append(gone, slice.Pods[i])
			}
		}
		logChanges(ctx, gone, nil)
	}
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
