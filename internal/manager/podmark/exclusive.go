// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// waitNotice is how long a pod waits for exclusive marks until it is reported. A hand-over takes
// milliseconds.
const waitNotice = 5 * time.Second

// wait is since when a pod waits for exclusive marks.
type wait struct {
	since time.Time
	probe identity.ID
	// blocker is the pod that it waits for, why says so, and reported is whether it has waited for
	// waitNotice.
	blocker  string
	why      string
	reported bool
}

// subject returns the pod, or nil if there is none or if it keeps its marks because it is ending.
func (r *Reconciler) subject(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod, err := r.Reader.CachedPod(ctx, name)
	if err != nil || pod == nil || !plan.Ending(pod) {
		return pod, err
	}
	markers, err := r.Reader.MarkersOf(ctx, name.Namespace, pod.Labels)
	inContest := func(m *plan.Marker) bool { return len(m.Exclusives()) > 0 && m.Selects(pod) }
	if err != nil || !slices.ContainsFunc(markers, inContest) {
		return nil, err
	}
	return pod, nil
}

// contest returns the view with the contests of the pod. It makes no request, except where a pod would
// get marks and the cache does not show that no other pod can have them.
func (r *Reconciler) contest(ctx context.Context, v cached.Pod, markers []*plan.Marker) (cached.Pod, error) {
	var contests []*cached.Contest
	for _, marker := range markers {
		if len(marker.Exclusives()) == 0 || !marker.Selects(v.Object) {
			continue
		}
		objects, err := r.Reader.MarkerObjects(ctx, marker.Namespace)
		if err != nil {
			return v, err
		}
		at := slices.IndexFunc(objects, func(m *v1alpha1.PodProbeMarker) bool { return m.Name == marker.Name })
		if at < 0 {
			continue
		}
		for _, e := range marker.Exclusives() {
			group, grouped := e.Group(v.Object)
			holder, _ := e.Holder(r.holders(objects[at]).all, group)
			c := cached.NewContest(e, grouped, exclusive.Group{Record: exclusive.Record{UID: holder.UID, Version: holder.ResourceVersion}})
			if err := r.decide(ctx, c, v, marker, holder.Pod); err != nil {
				return v, err
			}
			contests = append(contests, c)
		}
	}
	return v.WithContests(contests), nil
}

// decide adds the pods of the group that matter to the contest, and decides it.
func (r *Reconciler) decide(ctx context.Context, c *cached.Contest, v cached.Pod, marker *plan.Marker, holder string) error {
	c.Add(v)
	if !c.Grouped {
		c.Decide()
		return nil
	}
	if err := r.survey(ctx, c, v.Object, marker); err != nil {
		return err
	}
	if c.Decide(); c.Step == exclusive.Look && c.Wins(v.Object.UID) && !c.Winner.Marked {
		return r.look(ctx, c, v.Object, marker, holder)
	}
	return nil
}

// survey adds those of the other pods in the group that matter, and of the pods that only claim the marks the
// one with the best claim. It looks at all pods of the namespace, so it does not plan their probes.
func (r *Reconciler) survey(ctx context.Context, c *cached.Contest, self *corev1.Pod, marker *plan.Marker) error {
	markers, err := r.Reader.Markers(ctx, self.Namespace)
	if err != nil {
		return err
	}
	all, err := r.Reader.NamespacePods(ctx, self.Namespace)
	if err != nil {
		return err
	}
	type claim struct {
		exclusive.Pod
		object *corev1.Pod
	}
	var claims []claim
	group, _ := c.Exclusive.Group(self)
	states := r.Reader.States(ctx, marker.Probe(c.ID))
	for _, pod := range all {
		rival := c.IsIn(pod, group) && marker.Selects(pod)
		switch {
		case pod.UID == self.UID || !rival && pod.UID != c.Group.Record.UID:
		case c.Concerns(pod):
			view, err := r.Reader.Pod(ctx, pod, markers)
			if err != nil {
				return err
			}
			if !rival {
				view.Plan = plan.PodPlan{}
			}
			c.Add(view)
		default:
			state, err := states(pod)
			if err != nil {
				return err
			}
			if claimed := c.Claim(pod, state); claimed.Claims {
				claims = append(claims, claim{claimed, pod})
			}
		}
	}
	slices.SortFunc(claims, func(a, b claim) int { return c.Group.Record.Compare(&a.Pod, &b.Pod) })
	for _, claim := range claims {
		view, err := r.Reader.Pod(ctx, claim.object, markers)
		if err != nil {
			return err
		}
		if c.Add(view) {
			break
		}
	}
	return nil
}

// look asks the API server what the cache does not show, and decides again: about the pod in the record, or
// if there is no record, about all pods of the group.
func (r *Reconciler) look(ctx context.Context, c *cached.Contest, winner *corev1.Pod, marker *plan.Marker, holder string) error {
	var found []corev1.Pod
	if c.Group.Record.UID != "" {
		pod := corev1.Pod{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: winner.Namespace, Name: holder}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look for the holder of exclusive marks: %w", err)
		}
		if c.Group.Gone = err != nil || pod.UID != c.Group.Record.UID; !c.Group.Gone {
			found = append(found, pod)
		}
	} else {
		var all corev1.PodList
		if err := r.Live.List(ctx, &all, client.InNamespace(winner.Namespace)); err != nil {
			return fmt.Errorf("look for pods with exclusive marks: %w", err)
		}
		group, _ := c.Exclusive.Group(winner)
		found = slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool {
			return pod.UID == winner.UID || !c.IsIn(&pod, group) || !marker.Selects(&pod) || !c.Marks.AnyIn(&pod)
		})
		c.Group.Surveyed = true
	}
	for i := range found {
		pod := &found[i]
		known := func(p exclusive.Pod) bool { return p.UID == pod.UID && p.Version == pod.ResourceVersion }
		if slices.ContainsFunc(c.Group.Pods, known) {
			continue
		}
		if plan.Ending(pod) {
			if err := r.unmark(ctx, c, pod); err != nil {
				return err
			}
		}
		c.Add(cached.Pod{Object: pod})
	}
	c.Decide()
	return nil
}

// unmark removes the exclusive marks of an ended pod that is not in the cache, so that no reconcile does
// it, and stops a write that may be under way to it. It changes the pod as the API server does.
func (r *Reconciler) unmark(ctx context.Context, c *cached.Contest, pod *corev1.Pod) error {
	keys := c.Marks.In(pod).Keys()
	version, err := pod.ResourceVersion, error(nil)
	switch {
	case len(keys) > 0:
		version, err = r.Pods.Remove(ctx, pod, keys)
	case pod.ResourceVersion == c.Group.Record.Version:
		var marks mark.Marks
		if marks, err = r.parser.Owned(pod); err == nil {
			marks[mark.Annotation(v1alpha1.ExclusiveFenceAnnotationKey)] = mark.Value{Text: version}
			version, err = r.Pods.Marks(ctx, pod, marks)
		}
	}
	if errors.Is(err, apply.ErrOutdated) || errors.Is(err, apply.ErrGone) {
		return errHolders
	}
	if err != nil {
		return fmt.Errorf("unmark ended pod %s: %w", pod.Name, err)
	}
	mark.Remove(pod, keys)
	pod.ResourceVersion = version
	return nil
}

// nudge enqueues the other pods of the contests that have to be written next.
func (r *Reconciler) nudge(v cached.Pod) {
	for _, c := range v.Contests {
		if next := c.Next(); c.Grouped && next != nil && next.UID != v.Object.UID {
			r.Inbox.Enqueue(types.NamespacedName{Namespace: v.Object.Namespace, Name: next.Name})
		}
	}
}

// noteWait remembers whether the pod waits for exclusive marks, and returns after what time it is checked
// again without an event. Zero means that it does not wait.
func (r *Reconciler) noteWait(pod types.NamespacedName, v cached.Pod) (again time.Duration) {
	for _, c := range v.Contests {
		if v.Report.Held[c.ID] != mark.Waiting || !c.Wins(v.Object.UID) {
			continue
		}
		now := r.Now()
		r.waits.Update(pod, func(w *wait) bool {
			if w.since.IsZero() || w.probe != c.ID {
				*w = wait{since: now, probe: c.ID}
			}
			w.why, w.reported, w.blocker = c.Why(), now.Sub(w.since) >= waitNotice, ""
			if c.Blocker != nil {
				w.blocker = c.Blocker.Name
			}
			if again = waitNotice; now.Sub(w.since) < time.Second && (c.Blocker == nil || !c.Blocker.Marked) {
				// The cache gets another version, which does not enqueue the pod.
				again = recheck
			}
			return true
		})
		return again
	}
	r.waits.Forget(pod)
	return 0
}

// Waiting returns how many pods have waited long for exclusive marks.
func (r *Reconciler) Waiting() int {
	n := 0
	r.waits.Each(func(_ types.NamespacedName, w wait) {
		if w.reported {
			n++
		}
	})
	return n
}

// enqueueRivals enqueues one pod of each group that the pod was in, and is not any more: its reconcile enqueues
// the one that gets the marks now. After is nil if the pod was deleted.
func (r *Reconciler) enqueueRivals(ctx context.Context, q controllers.Queue, before, after *corev1.Pod) {
	for _, marker := range affected.Found(r.Reader.MarkersOf(ctx, before.Namespace, before.Labels))(ctx) {
		if len(marker.Exclusives()) == 0 || !marker.Selects(before) {
			continue
		}
		for _, e := range marker.Exclusives() {
			group, grouped := e.Group(before)
			if !grouped || after != nil && marker.Selects(after) && e.IsIn(after, group) {
				continue
			}
			isRival := func(pod *corev1.Pod) bool {
				return pod.UID != before.UID && e.IsIn(pod, group) && marker.Selects(pod)
			}
			all := affected.Found(r.Reader.NamespacePods(ctx, before.Namespace))(ctx)
			if at := slices.IndexFunc(all, isRival); at >= 0 {
				controllers.Enqueue(q, client.ObjectKeyFromObject(all[at]))
			}
		}
	}
}

// enqueueWaiting enqueues the pods that wait for a change of the pod.
func (r *Reconciler) enqueueWaiting(q controllers.Queue, pod types.NamespacedName) {
	r.waits.Each(func(waiting types.NamespacedName, w wait) {
		if w.blocker == pod.Name && waiting.Namespace == pod.Namespace {
			controllers.Enqueue(q, waiting)
		}
	})
}

// errHolders means that what was decided from has changed since, or that the holders of the marker are being
// written.
var errHolders = errors.New("holders of the marker have changed")

func isGone(err error, live *corev1.Pod, uid types.UID) bool {
	return apierrors.IsNotFound(err) || err == nil && live.UID != uid
}
