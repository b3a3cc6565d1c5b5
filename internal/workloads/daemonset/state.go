// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/btree"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// degree is that of the trees of slots.
const degree = 16

// counts are the sums of the views of a set.
type counts struct {
	fits, scheduled, misscheduled, ready, available, updated, updatedReady, old, begun, unavailable, surging, serving, misfit int
}

// add adds n times the view.
func (c *counts) add(v *view, n int) {
	for _, count := range []struct {
		is  bool
		sum *int
	}{
		{v.fits, &c.fits}, {v.scheduled, &c.scheduled}, {v.misscheduled, &c.misscheduled}, {v.ready, &c.ready},
		{v.available, &c.available}, {v.updated, &c.updated}, {v.updatedReady, &c.updatedReady}, {v.old, &c.old},
		{v.begun, &c.begun}, {v.unavailable, &c.unavailable}, {v.surging, &c.surging}, {v.serving, &c.serving}, {v.misfit, &c.misfit},
	} {
		if count.is {
			*count.sum += n
		}
	}
}

// state is what is known about a set.
type state struct {
	key   types.NamespacedName
	owner owner.Key
	// generation and annotations are those of the set that the configuration is of.
	generation  int64
	annotations map[string]string
	// placement is what the fit of the configuration was compiled from.
	placement placement
	config    *config
	slots     map[string]*slot
	counts    counts
	// queues are the slots of each class, in the order in which a step takes them. wakes are those whose view changes
	// with time, by time, and down those that are unavailable, by time.
	queues      [classes]*btree.BTreeG[*slot]
	wakes, down *btree.BTreeG[*slot]
	// stuck are the slots with a pod whose resize does not take effect.
	stuck map[*slot]bool
	dirty []*slot
	// hashes counts the pods of each revision.
	hashes map[string]int
	// deleting are the nodes of the pods that the last step deleted.
	deleting map[types.UID]string
}

// placement are the fields of a template that decide on which nodes it runs.
type placement struct {
	spec  corev1.PodSpec
	reach string
}

func placementOf(set *v1alpha1.DaemonSet, reach labels.Selector) placement {
	spec := &set.Spec.Template.Spec
	p := placement{reach: reach.String(), spec: corev1.PodSpec{
		NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, HostNetwork: spec.HostNetwork,
	}}
	if required := nodefit.Required(spec.Affinity); required != nil {
		p.spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	return p
}

func newState(key types.NamespacedName, set owner.Key) *state {
	ascending := func(a, b *slot) bool { return a.node < b.node }
	descending := func(a, b *slot) bool { return a.node > b.node }
	ordered := func(at func(*slot) time.Time) *btree.BTreeG[*slot] {
		return btree.NewG(degree, func(a, b *slot) bool { return cmp.Or(at(a).Compare(at(b)), cmp.Compare(a.node, b.node)) < 0 })
	}
	return &state{
		key: key, owner: set, slots: map[string]*slot{}, hashes: map[string]int{}, deleting: map[types.UID]string{}, stuck: map[*slot]bool{},
		queues: [classes]*btree.BTreeG[*slot]{
			removes: btree.NewG(degree, ascending), creates: btree.NewG(degree, ascending),
			resumes: btree.NewG(degree, descending), begins: btree.NewG(degree, descending),
			refused: btree.NewG(degree, descending), replaces: btree.NewG(degree, descending), updates: btree.NewG(degree, descending),
		},
		wakes: ordered(func(s *slot) time.Time { return s.wake }), down: ordered(func(s *slot) time.Time { return s.since }),
	}
}

// configure sets the configuration. All views are computed again if it differs, and what the nodes are for the set only
// if fields differ that decide about it.
func (st *state) configure(generation int64, c *config, placed placement, nodes func() []*corev1.Node) {
	same := st.config != nil && placed.reach == st.placement.reach && equality.Semantic.DeepEqual(&placed.spec, &st.placement.spec)
	if same {
		c.fit, c.reach = st.config.fit, st.config.reach
	}
	st.generation, st.config, st.placement = generation, c, placed
	if !same {
		for _, node := range nodes() {
			st.slot(node.Name).facts = c.node(node)
		}
	}
	for _, s := range st.slots {
		st.touch(s)
	}
}

// slot returns the slot of the node, which it creates if there is none.
func (st *state) slot(node string) *slot {
	s := st.slots[node]
	if s == nil {
		s = &slot{node: node}
		st.slots[node] = s
		st.touch(s)
	}
	return s
}

// touch notes that the slot must be looked at again.
func (st *state) touch(s *slot) {
	if !s.dirty {
		s.dirty = true
		st.dirty = append(st.dirty, s)
	}
}

// put adds the pod, or replaces an older version of it.
func (st *state) put(pod *corev1.Pod) {
	s := st.slot(nodefit.Target(pod))
	i := slices.IndexFunc(s.pods, func(known *corev1.Pod) bool { return known.UID == pod.UID })
	switch {
	case i < 0:
		s.pods = append(s.pods, pod)
	case objectversion.Older(pod.ResourceVersion, s.pods[i].ResourceVersion):
		return
	default:
		st.hashed(s.pods[i], -1)
		s.pods[i] = pod
	}
	st.hashed(pod, 1)
	st.touch(s)
}

// drop removes the pod with the UID from the slot of the pod's node.
func (st *state) drop(pod *corev1.Pod) {
	s := st.slots[nodefit.Target(pod)]
	if s == nil {
		return
	}
	if i := slices.IndexFunc(s.pods, func(known *corev1.Pod) bool { return known.UID == pod.UID }); i >= 0 {
		st.hashed(s.pods[i], -1)
		s.pods = slices.Delete(s.pods, i, i+1)
		st.touch(s)
	}
}

// hashed counts the pod n times for its revision.
func (st *state) hashed(pod *corev1.Pod, n int) {
	hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	if st.hashes[hash] += n; st.hashes[hash] == 0 {
		delete(st.hashes, hash)
	}
}

// refresh computes the views of the slots that have changed, or whose time has come, and returns them by node.
func (st *state) refresh(now time.Time) []*slot {
	for s, found := st.wakes.Min(); found && !s.wake.After(now); s, found = st.wakes.Min() {
		st.wakes.Delete(s)
		s.wake = time.Time{}
		st.touch(s)
	}
	dirty := st.dirty
	st.dirty = nil
	for _, s := range dirty {
		s.dirty = false
		st.view(s, now)
	}
	slices.SortFunc(dirty, func(a, b *slot) int { return cmp.Compare(a.node, b.node) })
	return slices.DeleteFunc(dirty, func(s *slot) bool { return len(s.pods) == 0 })
}

// view computes the view of a slot. A slot without a node and pods is forgotten.
func (st *state) view(s *slot, now time.Time) {
	before := s.view
	after, wake := st.config.look(s, now)
	if before.class != after.class {
		if before.class != idle {
			st.queues[before.class].Delete(s)
		}
		if after.class != idle {
			st.queues[after.class].ReplaceOrInsert(s)
		}
	}
	st.counts.add(&before, -1)
	st.counts.add(&after, 1)
	if before.unavailable != after.unavailable {
		if before.unavailable {
			st.down.Delete(s)
		} else {
			s.since = now
			st.down.ReplaceOrInsert(s)
		}
	}
	if delete(st.stuck, s); after.stuck.pod != "" {
		st.stuck[s] = true
	}
	s.view = after
	st.wake(s, wake)
	if !s.facts.exists && len(s.pods) == 0 {
		st.wake(s, time.Time{})
		delete(st.slots, s.node)
	}
}

// wake sets when the slot is looked at without an event.
func (st *state) wake(s *slot, at time.Time) {
	if s.wake.Equal(at) {
		return
	}
	if !s.wake.IsZero() {
		st.wakes.Delete(s)
	}
	if s.wake = at; !at.IsZero() {
		st.wakes.ReplaceOrInsert(s)
	}
}

// next returns the time until a slot must be looked at without an event, zero if none must.
func (st *state) next(now time.Time) time.Duration {
	if s, found := st.wakes.Min(); found {
		return max(s.wake.Sub(now), time.Millisecond)
	}
	return 0
}

// unseen returns which of the deleted pods are not known to terminate.
func (st *state) unseen(deleted map[types.UID]bool) map[types.UID]bool {
	unseen := map[types.UID]bool{}
	for uid := range deleted {
		if s := st.slots[st.deleting[uid]]; s != nil && slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
			return pod.UID == uid && !planning.Terminating(pod)
		}) {
			unseen[uid] = true
		}
	}
	return unseen
}
