// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"slices"

	"github.com/seamark-dev/seamark/internal/probing"
)

// shares divides a fixed number of slots between namespaces, and the part of a namespace
// between its pods. It decides only; Gate makes callers wait. Its rules:
//
//   - a free slot goes to the namespace that uses the fewest, and among equals to the one
//     whose last turn is the longest ago; then to a pod of the namespace in the same way, and
//     to the runs of a pod in the order of their arrival. A namespace that uses no slot
//     therefore waits for at most one run of each other waiting namespace;
//   - a pod uses at most a quarter of all slots, and a namespace at most three quarters of
//     the slots that other namespaces leave, but each at least one. A running probe is
//     not interrupted, so these limits also apply while nobody waits: slow probes of some
//     pods leave slots to others;
//   - the last eighth of the slots is for namespaces that use none, or less than one of 32, so that
//     several namespaces with slow probes do not take all slots together.
type shares struct {
	total, used int
	// clock counts turns.
	clock      uint64
	namespaces map[string]*share
}

// share is the part of one namespace, or of one pod of a namespace.
type share struct {
	used, waiting int
	// turn is when the share last got a slot, or when it began to wait for its first.
	turn uint64
	// pods are the parts of a namespace.
	pods map[string]*share
	// queue are the waiting runs of a pod, in the order of their arrival.
	queue []*ticket
}

// ticket is one run that waits for a slot or uses one.
type ticket struct {
	owner probing.Owner
	// ready is closed when the run has a slot.
	ready chan struct{}
}

func newShares(total int) *shares {
	return &shares{total: total, namespaces: map[string]*share{}}
}

// wait adds a run to the queue.
func (s *shares) wait(t *ticket) {
	namespace := s.active(s.namespaces, t.owner.Namespace)
	if namespace.pods == nil {
		namespace.pods = map[string]*share{}
	}
	pod := s.active(namespace.pods, t.owner.Pod)
	namespace.waiting++
	pod.waiting++
	pod.queue = append(pod.queue, t)
}

// active returns the share of a name. A new one takes its turn after all others.
func (s *shares) active(shares map[string]*share, name string) *share {
	found := shares[name]
	if found == nil {
		s.clock++
		found = &share{turn: s.clock}
		shares[name] = found
	}
	return found
}

// next gives a free slot to a waiting run and returns the run. It returns nil if no run may
// have a slot.
func (s *shares) next() *ticket {
	if s.used >= s.total {
		return nil
	}
	namespace := first(s.namespaces, func(n *share) bool {
		return s.mayUse(n) && first(n.pods, s.mayRun) != nil
	})
	if namespace == nil {
		return nil
	}
	pod := first(namespace.pods, s.mayRun)
	t := pod.queue[0]
	pod.queue = slices.Delete(pod.queue, 0, 1)
	s.used++
	s.clock++
	for _, each := range []*share{namespace, pod} {
		each.used++
		each.waiting--
		each.turn = s.clock
	}
	return t
}

// first returns the waiting share that is allowed and has the first claim to a slot, or nil.
func first(shares map[string]*share, allowed func(*share) bool) *share {
	var best *share
	for _, each := range shares {
		if each.waiting == 0 || !allowed(each) {
			continue
		}
		if best == nil || each.used < best.used || each.used == best.used && each.turn < best.turn {
			best = each
		}
	}
	return best
}

// mayUse reports whether a namespace may use another slot now.
func (s *shares) mayUse(namespace *share) bool {
	free := s.total - s.used
	if free <= s.total/8 && namespace.used >= max(s.total/32, 1) {
		return false
	}
	return namespace.used == 0 || namespace.used < (free+namespace.used)*3/4
}

// mayRun reports whether a pod may use another slot.
func (s *shares) mayRun(pod *share) bool { return pod.used < max(s.total/4, 1) }

// withdraw removes a run from the queue.
func (s *shares) withdraw(t *ticket) {
	namespace := s.namespaces[t.owner.Namespace]
	pod := namespace.pods[t.owner.Pod]
	at := slices.Index(pod.queue, t)
	pod.queue = slices.Delete(pod.queue, at, at+1)
	namespace.waiting--
	pod.waiting--
	s.tidy(t.owner)
}

// release frees the slot of a run.
func (s *shares) release(t *ticket) {
	namespace := s.namespaces[t.owner.Namespace]
	s.used--
	namespace.used--
	namespace.pods[t.owner.Pod].used--
	s.tidy(t.owner)
}

// tidy removes the shares of an owner that neither uses a slot nor waits.
func (s *shares) tidy(owner probing.Owner) {
	namespace := s.namespaces[owner.Namespace]
	if pod := namespace.pods[owner.Pod]; pod.used == 0 && pod.waiting == 0 {
		delete(namespace.pods, owner.Pod)
	}
	if namespace.used == 0 && namespace.waiting == 0 {
		delete(s.namespaces, owner.Namespace)
	}
}
