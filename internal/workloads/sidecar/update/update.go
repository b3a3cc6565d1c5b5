// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package update decides which running pods of a SidecarSet get the latest revision, in place: images of
// containers and of native sidecars, and their resources. It is pure. How the containers of one pod change, and
// when they have changed, is decided as for the pods of a CloneSet.
package update

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/order"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// Input is what a step depends on.
type Input struct {
	// Set is a set that has been accepted.
	Set *v1alpha1.SidecarSet
	// Pods are the pods that have the set according to their annotations. They are not changed.
	Pods []*corev1.Pod
	// Selects reports whether the set selects the namespace: everybody can write the annotations, also in
	// namespaces that the set has nothing to do with.
	Selects func(namespace string) bool
	// Revisions are the revisions of the set.
	Revisions []*appsv1.ControllerRevision
	// Skipped are pods that have refused an update and are left alone for some time. They may be nil.
	Skipped map[types.UID]bool
	// Held is whether no pod may be updated now, because the cache is old.
	Held bool
	// Guards returns the guards of a namespace.
	Guards func(namespace string) guard.Guards
	// Now is the time.
	Now time.Time
}

// Output is a step.
type Output struct {
	// Actions are patches of pods, and the deletion of revisions that nothing needs.
	planning.Actions
	// Matched, Updated, Ready, UpdatedReady and NotUpgradable are for the status.
	Matched, Updated, Ready, UpdatedReady, NotUpgradable int32
	// Why is why the first pod is not upgradable, with its name.
	Why string
	// Guarded are the pods that would be updated and that guards protect, with their namespaces.
	Guarded guard.Held
}

// Plan returns the next step. The error is that of the latest revision, or of a selector of the strategy.
func Plan(in Input) (Output, error) {
	p := &planner{Input: in, differences: newDifferences(in.Revisions), out: Output{Guarded: guard.Held{}}}
	var err error
	if p.latest, err = p.differences.revision(in.Set.Status.InForce.Revision); err != nil {
		return Output{}, err
	}
	if err := p.collect(); err != nil {
		return Output{}, err
	}
	p.advance()
	p.count()
	p.start()
	p.setUpgradable()
	p.prune()
	return p.out, nil
}

type planner struct {
	Input
	differences *differences
	latest      *inject.Revision
	members     []*member
	out         Output
}

// member is a pod that has the set.
type member struct {
	pod *corev1.Pod
	// view is the pod as the update in place sees it, nil if the pod is done.
	view *corev1.Pod
	// revision is the name of its revision.
	revision string
	// updated is whether that is the latest one, and done whether nothing remains to be done.
	updated, done bool
	// selected is whether the strategy updates it.
	selected bool
	// disturbed is whether the last update has made it unavailable.
	disturbed bool
	// patched is whether this step changes it.
	patched bool
	// why is why it cannot be updated.
	why string
}

// name returns the name of the pod with its namespace: the set belongs to none.
func (m *member) name() string { return m.pod.Namespace + "/" + m.pod.Name }

// collect finds the pods.
func (p *planner) collect() error {
	force, strategy := p.Set.Status.InForce, &p.Set.Spec.UpdateStrategy
	selects, err := metav1.LabelSelectorAsSelector(force.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	updates := labels.Everything()
	if strategy.Selector != nil {
		if updates, err = metav1.LabelSelectorAsSelector(strategy.Selector); err != nil {
			return fmt.Errorf("spec.updateStrategy.selector: %w", err)
		}
	}
	for _, pod := range p.Pods {
		podLabels := labels.Set(pod.Labels)
		if !planning.Active(pod) || !selects.Matches(podLabels) || !p.Selects(pod.Namespace) {
			continue
		}
		stamped := inject.Of(pod, p.Set.Name)
		m := &member{pod: pod, revision: stamped.Revision, selected: updates.Matches(podLabels)}
		m.updated = stamped.Revision == p.latest.Name || stamped.Hash != "" && stamped.Hash == p.latest.Hash
		if m.done = m.updated && isDone(pod, stamped.At.Time); !m.done {
			m.view = newView(pod, p.Set.Name)
			m.disturbed = isDisturbed(m.view)
		}
		if !m.updated {
			m.why = p.differences.reason(m, p.latest)
		}
		p.members = append(p.members, m)
	}
	slices.SortFunc(p.members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return nil
}

// count fills the numbers of the status.
func (p *planner) count() {
	for _, m := range p.members {
		ready := planning.Ready(m.pod)
		p.out.Matched++
		if m.updated {
			p.out.Updated++
		}
		if ready {
			p.out.Ready++
		}
		if ready && m.updated && !m.disturbed {
			p.out.UpdatedReady++
		}
		if m.why != "" {
			p.out.NotUpgradable++
			if p.out.Why == "" {
				p.out.Why = m.name() + ": " + m.why
			}
		}
	}
}

// start starts the update of as many pods as the strategy permits.
func (p *planner) start() {
	strategy := &p.Set.Spec.UpdateStrategy
	if p.Held || strategy.Paused || strategy.Type == v1alpha1.NotUpdateSidecarSetStrategyType {
		return
	}
	matched, old, disturbed := len(p.members), 0, 0
	candidates := map[*corev1.Pod]*member{}
	var pods, all []*corev1.Pod
	for _, m := range p.members {
		all = append(all, m.pod)
		if m.disturbed {
			disturbed++
		}
		if m.updated {
			continue
		}
		old++
		if m.selected && m.why == "" && !p.Skipped[m.pod.UID] {
			candidates[m.pod] = m
			pods = append(pods, m.pod)
		}
	}
	left, budget := old-partition(strategy.Partition, matched), maxUnavailable(strategy.MaxUnavailable, matched)-disturbed
	apart := ranks(all)
	for _, pod := range order.Update(pods, order.UpdateOptions{
		Priority: strategy.PriorityStrategy, Scatter: scatter(strategy.ScatterStrategy, pods), All: all,
		Tie: func(a, b *corev1.Pod) int { return cmp.Compare(apart[a], apart[b]) },
	}) {
		m := candidates[pod]
		if left <= 0 {
			return
		}
		if p.guarded(m, p.differences.change(m)) || !m.disturbed && budget <= 0 {
			continue
		}
		if p.update(m) {
			left--
			if !m.disturbed {
				budget--
			}
		}
	}
}

// guarded reports whether a guard protects the pod from the change.
func (p *planner) guarded(m *member, change *inplace.Change) bool {
	if change == nil || !change.Restarts(m.view) {
		return false
	}
	name := p.Guards(m.pod.Namespace).Update(m.pod)
	p.out.Guarded.Add(name, m.name())
	return name != ""
}

// partition returns how many pods keep an old revision.
func partition(value *intstr.IntOrString, matched int) int {
	if value == nil {
		return 0
	}
	// The schema has checked the percentage.
	kept, err := intstr.GetScaledValueFromIntOrPercent(value, matched, true)
	if err != nil || value.Type == intstr.String && value.StrVal != "100%" && kept >= matched {
		return max(matched-1, 0)
	}
	return min(kept, matched)
}

// maxUnavailable returns how many pods the update may make unavailable, at least 1.
func maxUnavailable(value *intstr.IntOrString, matched int) int {
	if value == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(value, matched, true)
	if err != nil {
		return 1
	}
	return max(most, 1)
}

// ranks returns the position of each pod among the pods of its owner, so that the pods of one owner are far
// apart in an order by rank.
func ranks(pods []*corev1.Pod) map[*corev1.Pod]int {
	next, found := map[types.UID]int{}, map[*corev1.Pod]int{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			found[pod] = next[owner.UID]
			next[owner.UID]++
		}
	}
	return found
}

// prune deletes the oldest revisions that neither pods nor the set need, as long as there are more than the limit in all.
func (p *planner) prune() {
	limit := int(ptr.Deref(p.Set.Spec.RevisionHistoryLimit, defaultHistory))
	if len(p.Revisions) <= limit {
		return
	}
	used := sets.New(p.Set.Status.InForce.Revision, p.Set.Status.InForce.NamedRevision)
	for _, pod := range p.Pods {
		used.Insert(inject.Of(pod, p.Set.Name).Revision)
	}
	var unused []*appsv1.ControllerRevision
	for _, rev := range p.Revisions {
		if !used.Has(rev.Name) {
			unused = append(unused, rev)
		}
	}
	slices.SortFunc(unused, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	p.out.DeleteRevisions = unused[:min(len(unused), len(p.Revisions)-limit)]
}

// defaultHistory is the default of spec.revisionHistoryLimit.
const defaultHistory = 10
