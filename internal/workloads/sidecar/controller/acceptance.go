// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// shownProblems is the number of problems in a condition.
const shownProblems = 3

// ledger makes acceptances follow each other: of two sets in conflict, which are created at the same time, only
// one is accepted, although the cache shows neither decision yet.
type ledger struct {
	mu sync.Mutex
	// accepted are the sets with the acceptance that is being written.
	accepted map[types.UID]*v1alpha1.SidecarSet
	// tried are the results of dry runs.
	tried map[types.UID]trial
}

func newLedger() *ledger {
	return &ledger{accepted: map[types.UID]*v1alpha1.SidecarSet{}, tried: map[types.UID]trial{}}
}

// accept decides about the generation of the set, unless that has been done, and records it in the status. A
// generation that is not accepted leaves the last accepted one in force. The duration is when it must be called again.
func (c *Controller) accept(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) (time.Duration, error) {
	configuration, err := c.configMap(ctx, ConfigurationName)
	if err != nil {
		return 0, err
	}
	unserved := accept.Unserved(set)
	if len(unserved) > 0 && c.Pause.Active() {
		// OpenKruise injects its pods. Its containers have other names then.
		c.refuse(set, status, unserved...)
		status.InForce = nil
		return 0, nil
	}
	list, err := accept.ParseWhiteList(configuration.Data[accept.WhiteListKey], c.DefaultAllowed)
	if err != nil && len(set.Spec.PatchPodMetadata) > 0 {
		c.refuse(set, status, accept.Problem{Reason: accept.MetadataNotAllowed, Field: "ConfigMap " + ConfigurationName, Message: err.Error()})
		return 0, nil
	}
	if c.isDecided(set, list) {
		status.ObservedGeneration, status.LatestRevision = set.Generation, set.Status.InForce.Revision
		return 0, nil
	}
	var tried trial
	if len(unserved) == 0 {
		result, wait, err := c.try(ctx, set)
		if err != nil || wait > 0 {
			return wait, err
		}
		tried = result
	}
	decision, err := c.decide(set, list, tried.problems)
	if err != nil {
		return 0, err
	}
	if len(decision.Problems) > 0 {
		c.refuse(set, status, decision.Problems...)
		if decision.InForce != nil {
			status.InForce = decision.InForce
		}
		return 0, nil
	}
	if err := c.record(ctx, set, status, &decision); err != nil {
		c.ledger.withdraw(set.UID)
		return 0, err
	}
	accepted(set, status, &decision, tried.note)
	return 0, nil
}

// accepted records an acceptance. The note is why it is not known whether pods can have the containers.
func accepted(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus, decision *accept.Decision, note string) {
	status.ObservedGeneration, status.LatestRevision, status.InForce = set.Generation, decision.Latest.Name, decision.InForce
	condition := metav1.Condition{
		Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionTrue, ObservedGeneration: set.Generation,
		Reason: string(accept.Accepted), Message: "New pods get " + chosen(decision.InForce, decision.Latest.Name) + ".",
	}
	if note != "" {
		condition.Reason = string(accept.NotChecked)
		condition.Message += fmt.Sprintf(" It was not checked whether pods can have the containers, because %d dry runs failed: %s", tries, note)
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// chosen describes which revisions new pods get.
func chosen(force *v1alpha1.SidecarSetInForce, latest string) string {
	switch {
	case force.NamedRevision == "" || force.NamedRevision == latest:
		return "revision " + latest
	case force.Policy == v1alpha1.PartialSidecarSetInjectRevisionPolicy:
		return "revision " + force.NamedRevision + " or " + latest
	default:
		return "revision " + force.NamedRevision
	}
}

// refuse records why the generation is not accepted.
func (c *Controller) refuse(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus, problems ...accept.Problem) {
	var messages []string
	for _, problem := range problems[:min(len(problems), shownProblems)] {
		messages = append(messages, problem.String())
	}
	if more := len(problems) - shownProblems; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	condition := metav1.Condition{
		Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionFalse, ObservedGeneration: set.Generation,
		Reason: string(problems[0].Reason), Message: strings.Join(messages, "; "),
	}
	status.ObservedGeneration = set.Generation
	if meta.SetStatusCondition(&status.Conditions, condition) {
		c.Recorder.Event(set, corev1.EventTypeWarning, condition.Reason, condition.Message)
	}
}

// isDecided reports whether the generation has been accepted, and nothing that the decision depends on has
// changed since. Conflicts with later sets are theirs.
func (c *Controller) isDecided(set *v1alpha1.SidecarSet, list accept.WhiteList) bool {
	if !isAccepted(set) || accept.Allowed(set, list) != nil {
		return false
	}
	latest, ok := stored[*appsv1.ControllerRevision](c.Revisions, c.Namespace+"/"+set.Status.InForce.Revision)
	version := history.CustomVersion(set)
	return ok && history.Key(set, c.Namespace).Controls(latest) && (version == "" || latest.Labels[v1alpha1.SidecarSetCustomVersionLabel] == version)
}

// isAccepted reports whether the current generation has been accepted.
func isAccepted(set *v1alpha1.SidecarSet) bool {
	condition := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.SidecarSetAccepted)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == set.Generation &&
		set.Status.InForce != nil && set.Status.InForce.Generation == set.Generation
}

// decide decides with what the other sets inject. An acceptance counts from now on.
func (c *Controller) decide(set *v1alpha1.SidecarSet, list accept.WhiteList, problems []accept.Problem) (accept.Decision, error) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	others, err := c.others(set)
	if err != nil {
		return accept.Decision{}, err
	}
	decision, err := accept.Decide(accept.Input{
		Set: c.states.withAcceptance(set), Others: others, Revisions: c.revisions(set), List: list, Namespace: c.Namespace,
	})
	if err != nil {
		return accept.Decision{}, err
	}
	if decision.Problems = append(problems, decision.Problems...); len(decision.Problems) > 0 {
		if decision.Latest != nil {
			decision.InForce = nil // The pod of the dry run is refused.
		}
		return accept.Decision{Problems: decision.Problems, InForce: decision.InForce}, nil
	}
	pending := set.DeepCopy()
	pending.Status.InForce = decision.InForce
	c.ledger.accepted[set.UID] = pending
	return decision, nil
}

// withdraw forgets an acceptance that could not be written.
func (l *ledger) withdraw(set types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accepted, set)
}

// revisions returns the revisions of the set, which are in the program's own namespace.
func (c *Controller) revisions(set *v1alpha1.SidecarSet) []*appsv1.ControllerRevision {
	return reconciler.Controlled[*appsv1.ControllerRevision](c.Revisions, history.Key(set, c.Namespace))
}

// others returns what the other accepted sets inject. The ledger must be locked.
func (c *Controller) others(set *v1alpha1.SidecarSet) ([]*v1alpha1.SidecarSet, error) {
	var others []*v1alpha1.SidecarSet
	pending := maps.Clone(c.ledger.accepted)
	for _, other := range c.acceptedSets() {
		if written := pending[other.UID]; written != nil {
			delete(pending, other.UID)
			if force := other.Status.InForce; force == nil || force.Generation < written.Status.InForce.Generation {
				other = written
			} else {
				delete(c.ledger.accepted, other.UID)
			}
		}
		force := other.Status.InForce
		if other.UID == set.UID || other.DeletionTimestamp != nil || force == nil || elsewhere(set, force) {
			continue
		}
		views, err := accept.Views(other, c.Namespace, c.revisions(other))
		if err != nil {
			return nil, err
		}
		others = append(others, views...)
	}
	for uid := range pending {
		delete(c.ledger.accepted, uid) // These sets are gone.
	}
	return others, nil
}

// acceptedSets returns all sets with their last acceptances.
func (c *Controller) acceptedSets() []*v1alpha1.SidecarSet {
	sets := reconciler.All[*v1alpha1.SidecarSet](c.Sets)
	for i := range sets {
		sets[i] = c.states.withAcceptance(sets[i])
	}
	return sets
}

// elsewhere reports whether the sets are bound to different namespaces, which most sets of a large cluster are.
func elsewhere(set *v1alpha1.SidecarSet, force *v1alpha1.SidecarSetInForce) bool {
	return set.Spec.Namespace != "" && force.Namespace != "" && set.Spec.Namespace != force.Namespace
}

// record writes the revision of an accepted generation.
func (c *Controller) record(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus, decision *accept.Decision) error {
	var actions planning.Actions
	switch {
	case decision.New:
		actions.CreateRevision = decision.Latest
	case decision.Changed:
		actions.UpdateRevisions = []*appsv1.ControllerRevision{decision.Latest}
	default:
		return nil
	}
	if err := c.writeRevision(ctx, set, status, &actions); err != nil {
		return fmt.Errorf("write the revision of SidecarSet %s: %w", set.Name, err)
	}
	return nil
}

func (c *Controller) writeRevision(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus, actions *planning.Actions) error {
	outcome := c.Executor.Execute(ctx, c.writes(set, nil), actions)
	switch {
	case len(outcome.Failures) > 0 && apierrors.IsAlreadyExists(outcome.Failures[0].Err):
		// Another object has the name. The next one is tried.
		status.CollisionCount = new(ptr.Deref(status.CollisionCount, 0) + 1)
		return errors.Join(c.write(ctx, set, status), outcome.Failures[0].Err)
	case len(outcome.Failures) > 0:
		return outcome.Failures[0].Err
	case !outcome.Succeeded():
		return errors.Join(append(outcome.Errs, errors.New("not completed"))...)
	default:
		return nil
	}
}

// sameForce reports whether both versions of a set inject the same into the same pods.
func sameForce(before, after *v1alpha1.SidecarSet) bool {
	return before.UID == after.UID && equality.Semantic.DeepEqual(before.Status.InForce, after.Status.InForce)
}
