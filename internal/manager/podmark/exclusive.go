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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// waitNotice is how long a pod waits for exclusive marks until it is reported. A hand-over takes a fraction of a
// second.
const waitNotice = 5 * time.Second

const (
	// maxAsked is for how many policies a reconcile asks the API server. The others follow in the next one.
	maxAsked = 8
	// maxEnded is how many pods that have ended a reconcile writes.
	maxEnded = 16
)

// wait is since when a pod waits for exclusive marks.
type wait struct {
	since time.Time
	probe identity.ID
	// why says what it waits for, and reported is whether it has waited for waitNotice.
	why      string
	reported bool
}

// subject returns the pod, or nil if there is none or if it keeps its marks because it is ending: it has no ticket.
func (r *Reconciler) subject(ctx context.Context, name types.NamespacedName) (*corev1.Pod, error) {
	pod, err := r.Reader.CachedPod(ctx, name)
	if err != nil || pod == nil || !plan.Ending(pod) {
		return pod, err
	}
	markers, err := r.Reader.MarkersOf(ctx, name.Namespace, pod.Labels)
	inContest := func(m *plan.Marker) bool {
		return m.Selects(pod) && slices.ContainsFunc(m.Exclusives(), func(e plan.Exclusive) bool {
			_, has := pod.Labels[e.Ticket]
			return has
		})
	}
	if err != nil || !slices.ContainsFunc(markers, inContest) {
		return nil, err
	}
	return pod, nil
}

// contest returns the view with the contests of the pod. It makes no request, except where the pod gets marks. owned are
// Seamark's marks on the pod, and pending is whether the cache does not have the last write of them.
func (r *Reconciler) contest(ctx context.Context, v podview.Pod, markers []*plan.Marker, owned mark.Marks, pending bool) (podview.Pod, error) {
	v = v.WithContests(markers, owned)
	others, err := r.elections.report(ctx, v, markers, r.Reader.NamespacePods)
	if err != nil {
		return v, err
	}
	r.Inbox.Enqueue(others...)
	asked, ended := 0, 0
	for _, c := range v.Contests {
		if c.Takes() && !pending && asked < maxAsked {
			asked++
			r.clear(ctx, c, v.Object, &ended)
		}
	}
	return v.ApplyContests(), nil
}

// clear asks the API server whether another pod of the group has the ticket. The answer is not older than the version of the
// pod, which has the ticket. A request that fails is an obstacle, and not an error: the other marks of the pod do not wait.
// ended counts the pods that have ended and are written.
func (r *Reconciler) clear(ctx context.Context, c *podview.Contest, pod *corev1.Pod, ended *int) {
	var found corev1.PodList
	err := r.Live.List(ctx, &found, client.InNamespace(pod.Namespace), client.MatchingLabels{c.Ticket: c.Group}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: pod.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
	})
	if err != nil {
		c.Obstacle = "list pods with exclusive marks: " + problems.Reason(err)
		return
	}
	for i := range found.Items {
		rival := &found.Items[i]
		switch {
		case rival.UID == pod.UID || !c.IsIn(rival, c.Group):
		case *ended == maxEnded && plan.Ending(rival):
			c.Obstacle = fmt.Sprintf("pod %s has ended and may still have them", rival.Name)
			return
		case !plan.Ending(rival):
			c.Obstacle = fmt.Sprintf("pod %s may still have them", rival.Name)
			// Its ticket may come from its template: no other event enqueues a pod that is not probed.
			r.Inbox.Enqueue(client.ObjectKeyFromObject(rival))
			return
		default:
			*ended++
			// It may not be in the cache, so that no reconcile removes its ticket.
			_, err := r.Pods.Remove(ctx, rival, append(mark.Fixed(c.Policy).In(rival).Keys(), mark.Label(c.Ticket)))
			if err != nil && !errors.Is(err, apply.ErrGone) {
				c.Obstacle = fmt.Sprintf("pod %s has ended and still has them: %s", rival.Name, problems.Reason(err))
				return
			}
		}
	}
	c.Cleared = true
}

// noteWait remembers whether the pod waits for exclusive marks, and returns after what time it is checked
// again without an event. Zero means that it does not wait.
func (r *Reconciler) noteWait(pod types.NamespacedName, v podview.Pod) (again time.Duration) {
	for _, c := range v.Contests {
		if c.Wins() && c.Self.Unreported {
			// Nothing enqueues the pod when its node is lost.
			again = waitNotice
		}
		if v.Report.Held[c.ID] != mark.Waiting {
			continue
		}
		now := r.Now()
		r.waits.Update(pod, func(w *wait) bool {
			if w.since.IsZero() || w.probe != c.ID {
				*w = wait{since: now, probe: c.ID}
			}
			waited := now.Sub(w.since)
			w.why, w.reported = c.Why(), waited >= waitNotice
			switch again = waitNotice; {
			case c.Takes() && c.Obstacle == "" && waited < time.Second:
				again = recheck
			case c.Obstacle != "" && waited < waitNotice:
				// The cache may not show that the other pod is gone.
				again = time.Second
			}
			return true
		})
		return again
	}
	r.waits.Forget(pod)
	return again
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
