// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/order"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// member is an active pod of the set, and what the step does with it.
type member struct {
	pod *corev1.Pod
	// state is the state of the pod's label, or the state that the step puts the pod into.
	state pub.LifecycleStateType
	// updated reports whether the pod has the update revision.
	updated bool
	// ready reports whether the pod is ready. available reports whether it also has been ready for
	// minReadySeconds and is in the state Normal.
	ready, available bool
	// restarting reports whether the pod is ready although containers are about to restart: it is updated in place in service.
	restarting bool
	// interrupted reports whether only the first write of an update in place was executed: the pod is
	// not ready for its update, and nothing else has changed. The update continues, or is cancelled.
	interrupted bool
	// named reports whether podsToDelete or a label of the pod requests its deletion.
	named bool
	// deleted reports whether the step deletes the pod.
	deleted bool
	// reason is why the pod is deleted.
	reason string
	// patch is the change of the pod, nil if there is none.
	patch *planning.PodPatch
}

// leaving reports whether the pod does not remain in the set.
func (m *member) leaving() bool {
	return m.deleted || m.named || m.state == pub.LifecycleStatePreparingDelete
}

// readPods sorts the pods: it fills members, and adopts and releases pods. It reports whether it did:
// the pods then are not counted before the next step sees who controls them.
func (p *planner) readPods() bool {
	named := make(map[string]bool, len(p.Set.Spec.ScaleStrategy.PodsToDelete))
	for _, name := range p.Set.Spec.ScaleStrategy.PodsToDelete {
		named[name] = true
	}
	p.members, p.byPod = make([]*member, 0, len(p.Pods)), make(map[*corev1.Pod]*member, len(p.Pods))
	for _, pod := range p.Pods {
		if !planning.Active(pod) {
			continue
		}
		change, mine := p.control(pod)
		if change != planning.KeepController && p.Set.DeletionTimestamp == nil {
			p.out.Patches = append(p.out.Patches, planning.PodPatch{
				Pod: pod, Controller: change, Reason: map[planning.ControllerChange]string{
					planning.Adopt: "Adopted", planning.Release: "Released",
				}[change],
			})
		}
		if mine {
			m := p.read(pod, named)
			p.members, p.byPod[pod] = append(p.members, m), m
		}
	}
	p.countPods(&p.out.Status)
	p.spare = p.maxUnavailable - p.replicas + int(p.out.Status.ReadyReplicas) - len(p.filter(func(m *member) bool { return m.restarting }))
	p.budget = p.maxUnavailable - p.replicas + int(p.out.Status.AvailableReplicas)
	return len(p.out.Patches) > 0
}

// control returns what becomes of the pod's reference to its controller, and whether the set controls
// the pod now.
func (p *planner) control(pod *corev1.Pod) (planning.ControllerChange, bool) {
	matches := p.Selector.Matches(labels.Set(pod.Labels))
	switch controller := metav1.GetControllerOfNoCopy(pod); {
	case controller == nil && matches && p.wasMine(pod):
		return planning.Adopt, false
	case controller == nil && matches:
		p.strangers = append(p.strangers, pod.Name)
		return planning.KeepController, false
	case controller == nil || !p.mine(pod):
		return planning.KeepController, false
	case matches:
		return planning.KeepController, true
	default:
		return planning.Release, false
	}
}

// wasMine reports whether a pod without a controller was a pod of the set, for example before the set
// was deleted without its pods. Any other pod that the selector matches may be of another program, and
// the set would delete it if it has too many pods.
func (p *planner) wasMine(pod *corev1.Pod) bool {
	id := pod.Labels[v1alpha1.CloneSetInstanceID]
	return id != "" && pod.Name == p.Set.Name+"-"+id && revision.Of(pod, p.History.All) != nil
}

func (p *planner) read(pod *corev1.Pod, named map[string]bool) *member {
	m := &member{
		pod:     pod,
		state:   lifecycle.State(pod),
		updated: revision.Is(pod, p.History.Update.Name),
		ready:   planning.Ready(pod),
		named:   named[pod.Name],
	}
	if _, ok := pod.Labels[pub.SpecifiedDeleteKey]; ok {
		m.named = true
	}
	m.interrupted = !m.updated && inplace.Interrupted(pod, p.Hooks)
	if m.ready {
		available, left := planning.Available(pod, p.minReady(), p.Now)
		m.available = available && m.state == pub.LifecycleStateNormal
		m.restarting = m.state == pub.LifecycleStateUpdating && !inplace.Done(pod)
		p.After(left)
	}
	return m
}

func (p *planner) minReady() time.Duration {
	return time.Duration(p.Set.Spec.MinReadySeconds) * time.Second
}

// excluding reports whether pods in the state PreparingDelete do not count as pods of the set.
func (p *planner) excluding() bool {
	return p.Set.Spec.ScaleStrategy.ExcludePreparingDelete || p.Set.Labels[v1alpha1.CloneSetScalingExcludePreparingDeleteKey] == "true"
}

// enter puts the pod into the state. What the step would have changed in the pod otherwise is
// replaced: it follows from the new state in the next step.
func (p *planner) enter(m *member, state pub.LifecycleStateType) {
	m.patch = lifecycle.Enter(m.pod, state, p.Hooks, p.Now)
	m.state = state
	p.withdraw(m, stops(m.patch))
}

// withdraw updates the budget: the pod does not count as available from now on, and not as ready if it
// stops serving.
func (p *planner) withdraw(m *member, stops bool) {
	if m.available {
		m.available = false
		p.budget--
	}
	if stops && m.ready {
		m.ready = false
		if !m.restarting {
			p.spare--
		}
	}
}

// stops reports whether the patch makes a pod not ready or restarts its containers.
func stops(patch *planning.PodPatch) bool {
	return patch != nil && (len(patch.Images) > 0 || slices.ContainsFunc(patch.Conditions,
		func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionFalse }))
}

// blocked reports whether maxUnavailable does not permit that the pod is taken down. A pod that is not
// ready may always be taken down. A pod that is ready but not available for long enough yet waits
// until it is, because the other pods may depend on it. A pod that counts as unavailable because of
// its state, but that still serves, may be taken down if enough other pods serve.
func (p *planner) blocked(m *member) bool {
	if m.state == pub.LifecycleStateNormal {
		return m.ready && p.budget <= 0
	}
	spare := p.spare
	if m.restarting {
		spare++ // It counts already.
	}
	return m.ready && spare <= 0
}

// remove deletes the pod, or puts it into PreparingDelete if the hook holds it. With mark, a pod that
// is held gets the label that requests its deletion, so that it does not return to Normal. A pod that a guard protects
// stays as it is.
func (p *planner) remove(m *member, reason string, mark bool) {
	if p.Guarded(m.pod, nil) {
		return
	}
	if !lifecycle.Held(p.Hooks.PreDelete, m.pod) {
		m.deleted, m.reason, m.patch = true, reason, nil
		p.withdraw(m, true)
		return
	}
	if m.state != pub.LifecycleStatePreparingDelete {
		p.enter(m, pub.LifecycleStatePreparingDelete)
	}
	if mark && !m.named {
		value := "true"
		m.named = true
		m.patch = m.patch.Merge(&planning.PodPatch{
			Pod: m.pod, Reason: reason, Labels: map[string]*string{pub.SpecifiedDeleteKey: &value},
		})
	}
}

// scaleInOrder returns the members in the order in which they are deleted.
func (p *planner) scaleInOrder(members []*member) []*member {
	if len(members) < 2 {
		return members
	}
	opts := order.ScaleInOptions{
		Available: func(pod *corev1.Pod) bool { return p.byPod[pod].available }, Nodes: p.Nodes,
	}
	for i := range p.Set.Spec.Template.Spec.TopologySpreadConstraints {
		opts.TopologyKeys = append(opts.TopologyKeys, p.Set.Spec.Template.Spec.TopologySpreadConstraints[i].TopologyKey)
	}
	return p.membersOf(p.GuardedLast(order.ScaleIn(podsOf(members), opts), step.Deleted))
}

func podsOf(members []*member) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(members))
	for i, m := range members {
		pods[i] = m.pod
	}
	return pods
}

func (p *planner) membersOf(pods []*corev1.Pod) []*member {
	members := make([]*member, len(pods))
	for i, pod := range pods {
		members[i] = p.byPod[pod]
	}
	return members
}

// remaining returns the members that remain in the set, of old revisions and of the update revision.
func (p *planner) remaining() (old, updated []*member) {
	for _, m := range p.members {
		switch {
		case m.leaving():
		case m.updated:
			updated = append(updated, m)
		default:
			old = append(old, m)
		}
	}
	return old, updated
}

// filter returns the members for which the function returns true.
func (p *planner) filter(is func(*member) bool) []*member {
	var result []*member
	for _, m := range p.members {
		if is(m) {
			result = append(result, m)
		}
	}
	return result
}
