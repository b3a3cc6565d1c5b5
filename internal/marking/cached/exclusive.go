// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/value"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Contest is who has the marks of an exclusive policy in one group of pods.
type Contest struct {
	plan.Exclusive
	// Grouped is whether the pod is in a group: without one, it does not get the marks.
	Grouped bool
	// Marks are those of the policy.
	Marks mark.Marks
	// Group is what was decided from.
	Group exclusive.Group
	exclusive.Decision
}

// NewContest returns the contest of the pod, given its group without any pods.
func NewContest(e plan.Exclusive, grouped bool, group exclusive.Group) *Contest {
	return &Contest{Exclusive: e, Grouped: grouped, Marks: mark.Fixed(e.Policy), Group: group}
}

// Concerns reports whether the pod matters in the contest even if it claims nothing, so that its view must be
// added. Of the other pods, only the one with the best claim matters.
func (c *Contest) Concerns(pod *corev1.Pod) bool {
	return pod.UID == c.Group.Record.UID || c.Marks.AnyIn(pod)
}

// Claim returns the claim of a pod whose probe, if it is planned, has the state.
func (c *Contest) Claim(object *corev1.Pod, state v1alpha1.ContainerProbeState) exclusive.Pod {
	pod := exclusive.Pod{Name: object.Name, UID: object.UID, Version: object.ResourceVersion}
	if state.State != c.Policy.State {
		return pod
	}
	pod.Claims, pod.Since = true, state.LastTransitionTime.Time
	if from := c.Policy.Exclusive.TermFrom; from != nil {
		if term, refusal := value.Term(state.Message, from.JSONPath); refusal == nil {
			pod.Term = &term
		}
	}
	return pod
}

// Add adds a pod to the group, and reports whether it claims the marks. A pod that is ending, or about which
// nothing is reported, claims nothing.
func (c *Contest) Add(p Pod) (claims bool) {
	var state v1alpha1.ContainerProbeState
	own := c.Marks
	for _, probe := range p.Plan.Probes {
		if probe.ID != c.ID {
			continue
		}
		own = c.own(p.Plan.Probes)
		state, _ = p.Report.State(probe)
	}
	pod := c.Claim(p.Object, state)
	pod.Marked = own.AnyIn(p.Object)
	c.Group.Pods = append(c.Group.Pods, pod)
	return pod.Claims
}

// own returns the marks whose keys belong to the probe of the policy.
func (c *Contest) own(probes []plan.PlannedProbe) mark.Marks {
	claims, _ := mark.Claim(probes)
	return c.Marks.Of(claims, c.ID)
}

// Decide decides who has the marks.
func (c *Contest) Decide() { c.Decision = exclusive.Decide(c.Group) }

// Wins reports whether the pod has the best claim.
func (c *Contest) Wins(pod types.UID) bool { return c.Winner != nil && c.Winner.UID == pod }

// Next returns the pod that has to be written next, or nil if there is none.
func (c *Contest) Next() *exclusive.Pod {
	switch c.Step {
	case exclusive.Wait:
		return c.Blocker
	case exclusive.Take, exclusive.Claim, exclusive.Look:
		if !c.Winner.Marked {
			return c.Winner
		}
	}
	return nil
}

// Why says what the winner waits for.
func (c *Contest) Why() string {
	switch {
	case c.Blocker == nil:
		return "it is not known yet whether another pod has them"
	case c.Wins(c.Blocker.UID):
		return "the cache does not have the latest version of the pod"
	case c.Blocker.Marked:
		return fmt.Sprintf("pod %s still has them", c.Blocker.Name)
	default:
		return fmt.Sprintf("pod %s may still get them", c.Blocker.Name)
	}
}

// permits reports whether the pod may have the marks. marked is whether it has one of them.
func (c *Contest) permits(pod types.UID, marked bool) bool {
	switch {
	case !c.Grouped || c.Loses(pod):
		return false
	case marked:
		return true
	default:
		return c.Wins(pod) && (c.Step == exclusive.Take || c.Step == exclusive.Claim)
	}
}

// hold returns why the pod may not have the marks of its state, or an empty Hold if it may or its state has
// none.
func (c *Contest) hold(pod *corev1.Pod) mark.Hold {
	for i := range c.Group.Pods {
		if rival := &c.Group.Pods[i]; rival.UID == pod.UID && rival.Claims {
			switch {
			case !c.Grouped || c.Loses(pod.UID):
				return mark.Lost
			case !c.permits(pod.UID, rival.Marked):
				return mark.Waiting
			}
		}
	}
	return ""
}

// WithContests returns the view of a pod that takes part in the contests, after they are decided: the
// pod has the marks of exclusive policies only if it may have them.
func (p Pod) WithContests(contests []*Contest) Pod {
	p.Contests = contests
	for _, c := range contests {
		if hold := c.hold(p.Object); hold != "" {
			if p.Report.Held == nil {
				p.Report.Held = make(map[identity.ID]mark.Hold)
			}
			p.Report.Held[c.ID] = hold
		}
	}
	return p
}

// Compete returns the view of a pod in the contests among all pods of its namespace, as it is where the
// marks of all pods are known and no write is under way, as in a local run.
func (p Pod) Compete(markers []*plan.Marker, pods []Pod) Pod {
	var contests []*Contest
	for _, marker := range markers {
		if !marker.Selects(p.Object) {
			continue
		}
		for _, e := range marker.Exclusives() {
			group, grouped := e.Group(p.Object)
			c := NewContest(e, grouped, exclusive.Group{Surveyed: true})
			for _, other := range pods {
				of, in := e.Group(other.Object)
				if other.Object.UID == p.Object.UID || in == grouped && of == group && marker.Selects(other.Object) {
					c.Add(other)
				}
			}
			for _, pod := range c.Group.Pods {
				if pod.Marked {
					c.Group.Record = exclusive.Record{UID: pod.UID, Version: pod.Version}
				}
			}
			c.Decide()
			contests = append(contests, c)
		}
	}
	return p.WithContests(contests)
}

// WithHolders is like WithContests, for a pod whose group is not known: the holders in the status of the
// markers say which pod has the marks.
func (p Pod) WithHolders(markers []*v1alpha1.PodProbeMarker, compiled []*plan.Marker) Pod {
	var contests []*Contest
	for _, marker := range compiled {
		at := slices.IndexFunc(markers, func(m *v1alpha1.PodProbeMarker) bool {
			return m.Namespace == marker.Namespace && m.Name == marker.Name
		})
		if len(marker.Exclusives()) == 0 || at < 0 || !marker.Selects(p.Object) {
			continue
		}
		for _, e := range marker.Exclusives() {
			group, grouped := e.Group(p.Object)
			c := NewContest(e, grouped, exclusive.Group{})
			c.Add(p)
			holder, found := e.Holder(markers[at].Status.Holders, group)
			switch self := &c.Group.Pods[0]; {
			case holder.UID == self.UID || self.Marked:
				c.Decision = exclusive.Decision{Winner: self, Step: exclusive.Take}
			case found:
				c.Decision = exclusive.Decision{Winner: &exclusive.Pod{Name: holder.Pod, UID: holder.UID}, Step: exclusive.Keep}
			}
			contests = append(contests, c)
		}
	}
	return p.WithContests(contests)
}

// restrict removes the exclusive marks that the pod may not have.
func (p Pod) restrict(desired mark.Marks) mark.Marks {
	for _, c := range p.Contests {
		own := c.ownOf(p)
		if !c.permits(p.Object.UID, own.AnyIn(p.Object)) {
			for key := range own.Meet(desired) {
				delete(desired, key)
			}
		}
		if c.Fence && c.Blocker.UID == p.Object.UID {
			desired[mark.Annotation(v1alpha1.ExclusiveFenceAnnotationKey)] = mark.Value{Text: c.Group.Record.Version}
		}
	}
	return desired
}

// foreign adds the exclusive marks that the pod may not have, and that an apply would not remove.
func (p Pod) foreign(leftover []mark.Key, owned, desired mark.Marks) []mark.Key {
	shared := mark.Shared(p.Object.ManagedFields)
	for _, c := range p.Contests {
		if c.permits(p.Object.UID, true) {
			continue
		}
		for _, key := range c.ownOf(p).In(p.Object).Keys() {
			if !desired.Has(key) && (!owned.Has(key) || shared.Has(key)) && !slices.Contains(leftover, key) {
				leftover = append(leftover, key)
			}
		}
	}
	return leftover
}

// ownOf returns the marks that belong to the policy in the pod.
func (c *Contest) ownOf(p Pod) mark.Marks {
	for _, probe := range p.Plan.Probes {
		if probe.ID == c.ID {
			return c.own(p.Plan.Probes)
		}
	}
	return c.Marks
}

// Gets reports whether marks of the contest are among the desired ones, and the pod does not have any yet.
func (p Pod) Gets(c *Contest, desired mark.Marks) bool {
	own := c.ownOf(p)
	return len(own.Meet(desired)) > 0 && !own.AnyIn(p.Object)
}

// Loss says why the pod does not have the exclusive marks of the state of the probe.
func (p Pod) Loss(probe identity.ID) string {
	for _, c := range p.Contests {
		switch {
		case c.ID != probe || c.hold(p.Object) != mark.Lost:
		case !c.Grouped:
			return fmt.Sprintf("the pod does not have the label %s of exclusive.perLabel", c.Policy.Exclusive.PerLabel)
		default:
			return fmt.Sprintf("pod %s has the exclusive marks", c.Winner.Name)
		}
	}
	return ""
}

// HasExclusive reports whether one of the marks is exclusive.
func (p Pod) HasExclusive(marks mark.Marks) bool {
	return slices.ContainsFunc(p.Contests, func(c *Contest) bool { return len(c.ownOf(p).Meet(marks)) > 0 })
}
