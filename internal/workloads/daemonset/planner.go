// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// planner is a step while it is planned.
type planner struct {
	*step.Step
	out   *Output
	set   *v1alpha1.DaemonSet
	state *state
	// visited are the slots whose pods or views have changed since the last step, by node.
	visited []*slot
	// acted are the slots on which the step does something.
	acted map[*slot]bool

	// creates and deletes are the numbers of pods that the step may still create and delete.
	creates, deletes         int
	maxUnavailable, maxSurge int
	// permitted is the number of further nodes that partition permits to update. It is negative if fewer nodes may be
	// updated than are.
	permitted int
	// unavailable, serving and surging are the counts of the set after the step.
	unavailable, serving, surging int
}

// planner returns the planner of a step, with the slots as they are now.
func (e *Slots) planner(set *v1alpha1.DaemonSet, in planning.Input, out *Output) (*planner, error) {
	st := e.state(set)
	inUse := map[string]bool{}
	for hash := range st.hashes {
		inUse[hash] = true
	}
	planned, err := step.New(step.Set{
		Parts: parts(set), Object: set, Kind: Kind(), Hooks: set.Spec.Lifecycle, InUse: inUse, LabelRevisions: true,
		FailedUpdate: string(v1alpha1.DaemonSetFailedUpdate), Gated: inPlace(set),
		RevisionHistoryLimit: set.Spec.RevisionHistoryLimit, CollisionCount: set.Status.CollisionCount,
	}, in, &out.Actions)
	if err != nil {
		return nil, err
	}
	if err := e.configure(st, set, planned); err != nil {
		return nil, err
	}
	p := &planner{Step: planned, out: out, set: set, state: st, acted: map[*slot]bool{}}
	p.visited = st.refresh(in.Now)
	clear(st.deleting) // A step is planned when the cache has what the last one wrote.
	fits := st.counts.fits
	p.creates = burst(set, fits)
	p.deletes = p.creates
	p.maxUnavailable, p.maxSurge = budgets(set, fits)
	p.permitted = fits - scaled(rolling(set).Partition, fits) - st.counts.begun
	p.unavailable, p.serving, p.surging = st.counts.unavailable, st.counts.serving, st.counts.surging
	return p, nil
}

// configure configures the state of the set, if the set or its update revision has changed.
func (e *Slots) configure(st *state, set *v1alpha1.DaemonSet, planned *step.Step) error {
	update := planned.History.Update.Name
	if c := st.config; c != nil && st.generation == set.Generation && c.revision == update && maps.Equal(st.annotations, set.Annotations) {
		return nil
	}
	c, err := configure(set, planned.Selector, update)
	if err != nil {
		return err
	}
	st.annotations = set.Annotations
	st.configure(set.Generation, c, placementOf(set, c.reach), e.cache.Nodes)
	return nil
}

// adopt adopts the pods that the selector matches and that nothing controls.
func (p *planner) adopt() {
	for _, pod := range p.Pods {
		if !planning.Terminating(pod) {
			p.out.Patches = append(p.out.Patches, planning.PodPatch{Pod: pod, Reason: "Adopt", Controller: planning.Adopt})
		}
	}
}

// visit continues what has been started in the pods of the slots that have changed: deletions that a hook delays, and
// updates in place. What is no longer wanted is reverted. Pods that the selector does not match any more are released.
func (p *planner) visit() {
	for _, s := range p.visited {
		for _, pod := range s.pods {
			switch {
			case planning.Terminating(pod):
				p.patch(s, lifecycle.PrepareTerminating(pod, p.Hooks, p.Now))
			case !p.state.config.selector.Matches(labels.Set(pod.Labels)):
				p.patch(s, &planning.PodPatch{Pod: pod, Reason: "Release", Controller: planning.Release})
			case s.view.class == resumes: // See resume.
			case planning.Active(pod) || prepared(pod):
				p.advance(s, pod)
			}
			if p.acted[s] {
				p.state.touch(s) // The write may fail, and other pods follow.
				break
			}
		}
	}
}

// advance continues what has been started in a pod.
func (p *planner) advance(s *slot, pod *corev1.Pod) {
	var next inplace.Progress
	state := lifecycle.State(pod)
	if planning.Active(pod) && !inplace.Idle(pod) {
		var guarded bool
		if next, guarded = p.Next(pod); guarded {
			p.state.touch(s) // The guard may end without a change of the pod.
		}
		if next.After > 0 {
			p.state.wake(s, earliest.Time(s.wake, p.Now.Add(next.After)))
		}
	}
	switch {
	case state == pub.LifecycleStatePreparingDelete && !p.leaves(s, pod, next):
		back := pub.LifecycleStateNormal
		if !inplace.Done(pod) {
			back = pub.LifecycleStateUpdating
		}
		p.patch(s, lifecycle.Enter(pod, back, p.Hooks, p.Now).Merge(next.Patch))
	case state == pub.LifecycleStatePreparingDelete && lifecycle.Held(p.Hooks.PreDelete, pod):
		p.patch(s, lifecycle.Refresh(pod, p.Hooks, p.Now).Merge(next.Patch))
	case state == pub.LifecycleStatePreparingDelete:
		p.delete(s, pod, "PreparedDelete")
	case state == pub.LifecycleStateUpdating && !inplace.Done(pod), state == pub.LifecycleStateNormal:
		p.patch(s, lifecycle.Refresh(pod, p.Hooks, p.Now).Merge(next.Patch))
	default:
		p.patch(s, lifecycle.Enter(pod, pub.LifecycleStateNormal, p.Hooks, p.Now).Merge(next.Patch))
	}
}

// leaves reports whether a pod whose deletion is prepared is to be deleted.
func (p *planner) leaves(s *slot, pod *corev1.Pod, next inplace.Progress) bool {
	if planning.Finished(pod) {
		return true
	}
	c := p.state.config
	pair := c.pair(s)
	removals, _ := c.removals(s, &pair, p.Now)
	for i := range removals {
		if removals[i].pod == pod {
			return true
		}
	}
	if s.facts.fit != nodefit.Yes {
		return false // The node gets no other pod.
	}
	if next.Refused != "" && pod == pair.current && p.recreates(s) {
		return true
	}
	if pod != pair.old || pair.current != nil || !c.rolling || c.surge || !s.facts.reached || p.paused() {
		return false
	}
	if p.permitted < 0 {
		p.permitted++
		return false
	}
	return true
}

func (p *planner) paused() bool {
	paused := rolling(p.set).Paused
	return paused != nil && *paused
}

// remove deletes the pods that go whatever is unavailable.
func (p *planner) remove() {
	p.forEach(removes, func(s *slot) bool {
		c := p.state.config
		pair := c.pair(s)
		removals, _ := c.removals(s, &pair, p.Now)
		for _, removal := range removals {
			switch {
			case p.deletes <= 0:
				return false
			case prepared(removal.pod):
				continue
			case removal.reason == finished && pair.current == nil:
				s.fail(p.Now)
				p.state.touch(s)
			}
			p.leave(s, removal.pod, removal.reason)
		}
		return true
	})
}

// forEach calls do for the slots of the class on which the step does nothing yet, in their order, until it returns false.
func (p *planner) forEach(class class, do func(s *slot) bool) {
	p.state.queues[class].Ascend(func(s *slot) bool { return p.acted[s] || do(s) })
}

// create creates pods on nodes that have none: on all nodes, or with partitionedScaling on as many as partition permits.
func (p *planner) create() {
	limit := p.creates
	if p.state.config.partitioned {
		fits := p.state.counts.fits
		limit = min(limit, fits-scaled(rolling(p.set).Partition, fits)-p.state.counts.updated)
	}
	p.forEach(creates, func(s *slot) bool {
		if limit--; limit < 0 {
			return false
		}
		ended := len(s.pods) > 0
		if name := p.newPod(s); ended && name != s.successor {
			s.fail(p.Now)
			s.successor = name
			p.state.touch(s)
		}
		return true
	})
}

// newPod creates the pod of a node, and returns its name.
func (p *planner) newPod(s *slot) string {
	rev := p.History.Update
	pod := p.NewPod(rev, p.podName(s, rev.Name), p.revisionLabels())
	pod.GenerateName = p.set.Name + "-"
	pod.Spec.Tolerations = nodefit.Tolerations(&pod.Spec)
	nodefit.Bind(&pod.Spec, s.node)
	p.acted[s] = true
	p.creates--
	p.out.Creates = append(p.out.Creates, pod)
	p.Event("SuccessfulCreate", pod.Name, "Created pod %s of revision "+rev.Name+".", "Created %d pods of revision "+rev.Name+": %s.")
	return pod.Name
}

// podName returns the name of the new pod of a node and a revision. It is always the same, so that a pod whose creation was
// not answered is found by its name, unless pods of others have it. The old pod of a surge may have been created for the same
// revision, and updated in place since, and a pod that has ended still has its name: the successor has another one, which
// is that of no pod of the node.
func (p *planner) podName(s *slot, rev string) string {
	identity := s.node + "/" + rev
	pair := p.state.config.pair(s)
	for _, before := range append(pair.finished, pair.old) {
		if before == nil {
			continue
		}
		name := p.freeName(identity + "/" + string(before.UID))
		if !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool { return pod.Name == name }) {
			return name
		}
	}
	return p.freeName(identity)
}

// freeName returns the name of what the text describes that pods of others do not have.
func (p *planner) freeName(of string) string {
	for attempt := 0; ; attempt++ {
		name := p.set.Name + "-" + nodefit.NameSuffix(fmt.Sprintf("%s/%d", of, attempt))
		if !p.TakenNames[name] {
			return name
		}
	}
}

// revisionLabels returns the labels of pods of the update revision.
func (p *planner) revisionLabels() map[string]string {
	podLabels := map[string]string{appsv1.ControllerRevisionHashLabelKey: revision.Hash(p.History.Update.Name)}
	if generation := p.state.config.templateGeneration; generation != "" {
		podLabels[templateGenerationLabel] = generation
	}
	return podLabels
}

// leave deletes the pod, or lets the hook prepare its deletion.
func (p *planner) leave(s *slot, pod *corev1.Pod, reason string) {
	if p.Guarded(pod, nil) {
		return
	}
	if lifecycle.Held(p.Hooks.PreDelete, pod) {
		p.patch(s, lifecycle.Enter(pod, pub.LifecycleStatePreparingDelete, p.Hooks, p.Now))
		return
	}
	p.delete(s, pod, reason)
}

func (p *planner) delete(s *slot, pod *corev1.Pod, reason string) {
	if p.Guarded(pod, nil) {
		p.state.touch(s)
		return
	}
	p.acted[s] = true
	p.deletes--
	p.state.deleting[pod.UID] = s.node
	p.out.Deletes = append(p.out.Deletes, planning.PodDelete{Pod: pod, Reason: reason})
	if planning.Finished(pod) {
		p.out.Events = planning.AddEvent(p.out.Events, planning.PodEnded(pod))
	}
	p.Event("SuccessfulDelete", pod.Name, "Deleted pod %s: "+reason+".", "Deleted %d pods, "+reason+": %s.")
}

// patch adds a patch of a pod on the node. It does nothing if it is nil.
func (p *planner) patch(s *slot, patch *planning.PodPatch) {
	if patch != nil {
		p.acted[s] = true
		p.out.Patches = append(p.out.Patches, *patch)
	}
}
