// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// nodeFacts is what a node is for a set. The zero value is that of a node that does not exist.
type nodeFacts struct {
	exists bool
	fit    nodefit.Fit
	// reached reports whether the update reaches the node, unreachable whether its kubelet is not heard of, and joins whether
	// it has never been ready.
	reached, unreachable, joins bool
}

// slot is what is known about a node for a set. Small fields are next to each other: there is a slot per node and set.
type slot struct {
	// node is the name of the node, empty for the slot of pods that are bound to none.
	node string
	// pods are those of the set on the node, in no order.
	pods []*corev1.Pod
	// failures is the number of failed pods that were deleted, and retry when the next one may be.
	retry    time.Time
	failures int32
	// successor is the name of the last one of a pod that has ended: further attempts to create it are no failures.
	successor string

	facts nodeFacts
	// dirty reports whether the view must be computed again, and the pods be visited.
	dirty bool
	// view follows from the above, the configuration and the time, until wake, zero for ever.
	view view
	wake time.Time
	// since is when the view became unavailable.
	since time.Time
}

// class is what a step may do with the pods of a slot.
type class uint8

const (
	// idle slots need nothing.
	idle class = iota
	// removes has pods to delete, creates needs a pod.
	removes
	creates
	// resumes has an old pod whose update in place was interrupted, refused a pod whose update in place is refused,
	// which is recreated, and begins an old pod that serves while another update in place is not done.
	resumes
	refused
	begins
	// replaces has an old pod that is not ready, which is updated whatever is unavailable, and updates one that is.
	replaces
	updates
	classes
)

// view is what a slot contributes to the counts, and its class.
type view struct {
	class class
	// fits reports whether the node should have a pod. All others except misscheduled are false if not.
	fits, scheduled, misscheduled, ready, available, updated, updatedReady bool
	// old reports whether the node has an old pod and no new one, and begun whether it has an update behind it or
	// before it: partition counts such nodes as updated.
	old, begun bool
	// unavailable uses up maxUnavailable, and surging maxSurge. serving reports whether it is only unavailable because of an
	// update in place that is not done.
	unavailable, surging, serving bool
	// misfit reports whether the node has an old pod that stays although the node does not fit any more.
	misfit bool
	// stuck is the pod whose resize does not take effect, and why, zero if there is none.
	stuck stuck
}

// stuck is the name of a pod whose resize does not take effect, and why.
type stuck struct{ pod, why string }

// removal is a pod that is deleted whatever is unavailable, and why.
type removal struct {
	pod    *corev1.Pod
	reason string
}

// The reasons of deletions.
const (
	nodeGone     = "NodeGone"
	nodeMisfits  = "NodeDoesNotFit"
	duplicate    = "Duplicate"
	finished     = "Finished"
	updateReason = "Update"
)

// pair are the pods of a slot that stay: one of the update revision and one of another. Either may be nil.
type pair struct {
	current, old *corev1.Pod
	// extra are more pods of the same revision, finished the pods that have ended.
	extra, finished []*corev1.Pod
	terminating     bool
}

// pair returns what the pods of a slot are. Pods that the selector does not match are released and do not count.
func (c *config) pair(s *slot) (p pair) {
	for _, pod := range s.pods {
		switch {
		case !c.selector.Matches(labels.Set(pod.Labels)):
		case planning.Terminating(pod):
			p.terminating = true
		case planning.Finished(pod):
			p.finished = append(p.finished, pod)
		default:
			kept := &p.old
			if c.updated(pod) {
				kept = &p.current
			}
			if *kept != nil && compare(*kept, pod) > 0 {
				*kept, pod = pod, *kept
			}
			if *kept == nil {
				*kept = pod
			} else if *kept != pod {
				p.extra = append(p.extra, pod)
			}
		}
	}
	slices.SortFunc(p.extra, compare)
	slices.SortFunc(p.finished, compare)
	return p
}

// compare orders pods of one revision: the first one stays. A ready pod comes before one that is not, a scheduled one
// before one that is not, and the oldest first.
func compare(a, b *corev1.Pod) int {
	rank := func(yes bool) int {
		if yes {
			return 0
		}
		return 1
	}
	return cmp.Or(
		rank(planning.Ready(a))-rank(planning.Ready(b)), rank(a.Spec.NodeName != "")-rank(b.Spec.NodeName != ""),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name),
	)
}

// available reports whether the pod exists and is available, and otherwise when it will be, zero if that is not known. A
// pod that is being updated in place is not, whatever its kubelet has reported.
func (c *config) available(pod *corev1.Pod, now time.Time) (bool, time.Time) {
	if pod == nil || inplace.Begun(pod) {
		return false, time.Time{}
	}
	return c.serves(pod, now)
}

// serves reports whether the pod has been ready for minReadySeconds, also while it is being updated in place, and
// otherwise when it will have been, zero if that is not known.
func (c *config) serves(pod *corev1.Pod, now time.Time) (bool, time.Time) {
	available, left := planning.Available(pod, c.minReady, now)
	if left > 0 {
		return false, now.Add(left)
	}
	return available, time.Time{}
}

func ready(pod *corev1.Pod) bool { return pod != nil && planning.Ready(pod) }

// prepared reports whether a hook prepares the deletion of the pod. Such a pod is deleted when the hook releases it.
func prepared(pod *corev1.Pod) bool { return lifecycle.State(pod) == pub.LifecycleStatePreparingDelete }

// removals returns the pods of the slot that go whatever is unavailable, and when there will be more, zero if that is not
// known.
func (c *config) removals(s *slot, p *pair, now time.Time) (all []removal, wake time.Time) {
	add := func(reason string, pods ...*corev1.Pod) {
		for _, pod := range pods {
			if pod != nil {
				all = append(all, removal{pod: pod, reason: reason})
			}
		}
	}
	switch {
	case s.node == "":
	case !s.facts.exists:
		// Kubernetes deletes pods that were scheduled to a node that is gone, and no others.
		for _, pod := range slices.Concat([]*corev1.Pod{p.current, p.old}, p.extra, p.finished) {
			if pod != nil && pod.Spec.NodeName == "" {
				add(nodeGone, pod)
			}
		}
	case s.facts.fit == nodefit.No:
		add(nodeMisfits, p.current, p.old)
		add(nodeMisfits, p.extra...)
		add(nodeMisfits, p.finished...)
	default:
		add(duplicate, p.extra...)
		switch {
		case len(p.finished) > 0 && p.current == nil && s.retry.After(now):
			wake = s.retry
		case s.facts.fit != nodefit.Yes || !c.getsSuccessor(p):
			add(finished, p.finished...)
		}
		if available, _ := c.available(p.current, now); p.current != nil && p.old != nil && (available || !ready(p.old)) {
			add(updateReason, p.old)
		}
	}
	return all, wake
}

// getsSuccessor reports whether a new pod is created before those that have ended are deleted. Its name is computed from the UID of
// one of them, which every leader knows while that exists. They use nothing of their node. A hook that holds them comes first, and
// a set that may not create a pod only deletes them.
func (c *config) getsSuccessor(p *pair) bool {
	return !c.partitioned && len(p.finished) > 0 && p.current == nil && p.old == nil && !p.terminating &&
		!slices.ContainsFunc(p.finished, func(pod *corev1.Pod) bool { return prepared(pod) || lifecycle.Held(c.preDelete, pod) })
}

// look returns the view of a slot and when it changes without an event, zero if it does not.
func (c *config) look(s *slot, now time.Time) (v view, wake time.Time) {
	p := c.pair(s)
	if s.facts.exists && s.facts.fit != nodefit.Yes {
		v.misscheduled = len(s.pods) > 0
		v.misfit = s.facts.fit == nodefit.Keeps && p.current == nil && p.old != nil
	}
	removals, retry := c.removals(s, &p, now)
	wake = retry
	if slices.ContainsFunc(removals, func(r removal) bool { return !prepared(r.pod) }) {
		v.class = removes
	}
	if s.facts.fit != nodefit.Yes {
		return v, wake
	}
	current, currentAt := c.available(p.current, now)
	old, oldAt := c.available(p.old, now)
	wake = earliest.Time(wake, earliest.Time(currentAt, oldAt))
	v.fits, v.scheduled, v.updated, v.old = true, len(s.pods) > 0, p.current != nil, p.current == nil && p.old != nil
	v.ready, v.updatedReady = ready(p.current) || ready(p.old), ready(p.current)
	v.available = current || old
	v.begun = p.current != nil || p.old == nil || prepared(p.old)
	// A new pod that has ended counts until it is deleted: otherwise the update would go on where all new pods are refused.
	v.surging = c.surge && p.old != nil && !current && (p.current != nil || len(p.finished) > 0)
	v.stuck = s.stuck(now)
	v.unavailable = !c.ignores(s.facts) && c.unavailable(&p, current, old)
	if pod := cmp.Or(p.current, p.old); pod != nil && v.unavailable && inplace.Begun(pod) && !prepared(pod) {
		serves, at := c.serves(pod, now)
		v.serving, wake = serves, earliest.Time(wake, at)
	}
	switch {
	case v.class == removes:
	case p.current == nil && p.old == nil && !p.terminating && (len(p.finished) == 0 || !s.retry.After(now) && c.getsSuccessor(&p)):
		v.class = creates
	case !c.rolling || !s.facts.reached || len(s.pods) != 1 || prepared(s.pods[0]): // Others leave first.
	case v.old && inplace.Interrupted(p.old, &pub.Lifecycle{}):
		v.class, v.begun = resumes, true
	case v.old && v.serving:
		v.class = begins
	case v.old && ready(p.old):
		v.class = updates
	case v.old:
		v.class = replaces
	case c.refused(p.current, now):
		v.class = refused
	}
	return v, wake
}

// refused reports whether the update of a pod of the update revision cannot be finished in place.
func (c *config) refused(pod *corev1.Pod, now time.Time) bool {
	return pod != nil && inplace.Begun(pod) && inplace.Next(pod, now).Refused != ""
}

// stuck returns the pod of the slot whose resize does not take effect, zero if there is none.
func (s *slot) stuck(now time.Time) stuck {
	for _, pod := range s.pods {
		if planning.Active(pod) && inplace.Begun(pod) {
			if why := inplace.Next(pod, now).Stuck; why != "" {
				return stuck{pod: pod.Name, why: why}
			}
		}
	}
	return stuck{}
}

// unavailable reports whether a slot with the pods uses up maxUnavailable. An old pod that is not ready does not, unless
// it is being updated: it may be replaced freely. One that is ready and not yet available does, so that an update that
// follows another one does not make more pods unavailable.
func (c *config) unavailable(p *pair, current, old bool) bool {
	if p.current == nil && p.old != nil {
		return prepared(p.old) || inplace.Begun(p.old) || ready(p.old) && !old
	}
	return !current && !old || p.current != nil && prepared(p.current)
}
