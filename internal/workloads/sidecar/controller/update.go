// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/accept"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/update"
)

const (
	// retryDelay is when a step is planned again after one from an old cache.
	retryDelay = 200 * time.Millisecond
	// reportPause is the least time between two writes of a status in which only numbers of pods differ.
	reportPause = 5 * time.Second
	// firstRefusal and longestRefusal are how long a pod that refuses an update is left alone.
	firstRefusal, longestRefusal = 5 * time.Second, 5 * time.Minute
)

// update updates pods in place, counts them in the status, records events, and returns when it must be called again.
func (c *Controller) update(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) (time.Duration, error) {
	again, err := c.updatePods(ctx, set, status)
	return earliest.Wait(again, c.announce(set)), err
}

// collect keeps the events of a step about the pods whose writes succeeded, until announce.
func (c *Controller) collect(set *v1alpha1.SidecarSet, events []planning.Event, outcome *apply.Outcome) {
	succeeded, written := outcome.Succeeded(), sets.New(outcome.Written...)
	c.states.update(set, func(s *setState) {
		for i := range events {
			event := events[i]
			if !succeeded {
				event = event.Of(written)
			}
			if len(event.Pods) > 0 {
				s.events = planning.AddEvent(s.events, event)
			}
		}
	})
}

// announce records the events about pods at once, but not more often than every reconciler.EventPause: an update goes from pod to pod
// for hours. It returns how long they wait, or zero.
func (c *Controller) announce(set *v1alpha1.SidecarSet) (wait time.Duration) {
	var events []planning.Event
	c.states.update(set, func(s *setState) {
		switch left := s.announced.Add(reconciler.EventPause).Sub(c.Now()); {
		case len(s.events) == 0:
		case left > 0:
			wait = left
		default:
			events, s.events, s.announced = s.events, nil, c.Now()
		}
	})
	for i := range events {
		c.Recorder.Event(set, events[i].Type, events[i].Reason, events[i].Message())
	}
	return wait
}

func (c *Controller) updatePods(ctx context.Context, set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) (time.Duration, error) {
	if status.InForce == nil || status.InForce.Refused != "" || c.Pause.Active() {
		return 0, nil
	}
	if _, cached := stored[any](c.Revisions, c.Namespace+"/"+status.InForce.Revision); !cached {
		return retryDelay, nil // It has just been written.
	}
	current := set.DeepCopy()
	current.Status = *status
	caughtUp := false
	c.states.update(set, func(s *setState) { caughtUp = s.caughtUp(c.Pods) })
	skipped, wait := c.refusing(set)
	out, err := update.Plan(update.Input{
		Set: current, Pods: c.pods(set), Selects: c.namespaces(status.InForce), Revisions: c.revisions(set), Held: !caughtUp,
		Skipped: skipped, Now: c.Now(), Guards: c.guards(),
	})
	if err != nil {
		return 0, fmt.Errorf("plan the update of the pods of SidecarSet %s: %w", set.Name, err)
	}
	out.RequeueAfter = earliest.Wait(out.RequeueAfter, wait)
	c.report(set, status, &out)
	if !caughtUp {
		return retryDelay, nil
	}
	if out.Empty() {
		return earliest.Wait(out.RequeueAfter, c.recount(status)), nil
	}
	outcome := c.Executor.Execute(ctx, c.writes(set, status.InForce), &out.Actions)
	c.states.update(set, func(s *setState) { s.pods = outcome.Pods })
	c.collect(set, out.Events, &outcome)
	c.refuseUpdates(set, &out, &outcome)
	if len(outcome.Errs) > 0 {
		return 0, errors.Join(outcome.Errs...)
	}
	if outcome.Outdated || outcome.Incomplete {
		return retryDelay, nil
	}
	return earliest.Wait(out.RequeueAfter, c.recount(status)), nil
}

// refusing returns the pods that are skipped after a refused update, and how long until the first of them is tried again. Every
// reconcile must return this time, because its requeue replaces the earlier one.
func (c *Controller) refusing(set *v1alpha1.SidecarSet) (skipped map[types.UID]bool, wait time.Duration) {
	skipped = map[types.UID]bool{}
	c.states.update(set, func(s *setState) {
		for uid, refusal := range s.refused {
			if left := refusal.until.Sub(c.Now()); left > 0 {
				skipped[uid], wait = true, earliest.Wait(wait, left)
			} else if c.Now().After(refusal.until.Add(longestRefusal)) {
				delete(s.refused, uid)
			}
		}
	})
	return skipped, wait
}

// writes returns the set for the executor: it may write revisions in the program's own namespace, and patch the pods of
// namespaces that it selects.
func (c *Controller) writes(set *v1alpha1.SidecarSet, force *v1alpha1.SidecarSetInForce) apply.Set {
	return apply.Set{GroupVersionKind: Kind(), Object: set, Namespace: c.Namespace, Pods: func(namespace string) bool {
		return force != nil && c.selectsNamespace(force, namespace)
	}}
}

// refuseUpdates records which pods the API server did not update, so that they do not stop the others.
func (c *Controller) refuseUpdates(set *v1alpha1.SidecarSet, out *update.Output, outcome *apply.Outcome) {
	for _, failure := range outcome.Failures {
		c.Recorder.Eventf(set, corev1.EventTypeWarning, "FailedUpdate", "%s: %v", failure.Object, failure.Err)
		uid := failure.Pod
		if uid == "" {
			continue
		}
		c.states.update(set, func(s *setState) {
			if s.refused == nil {
				s.refused = map[types.UID]refusal{}
			}
			pause := min(max(2*s.refused[uid].pause, firstRefusal), longestRefusal)
			s.refused[uid] = refusal{until: c.Now().Add(pause), pause: pause}
			out.RequeueAfter = earliest.Wait(out.RequeueAfter, pause)
		})
	}
}

// report counts the pods in the status, and sets the condition Upgradable.
func (c *Controller) report(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus, out *update.Output) {
	status.MatchedPods, status.UpdatedPods, status.ReadyPods, status.UpdatedReadyPods = out.Matched, out.Updated, out.Ready, out.UpdatedReady
	status.NotUpgradablePods, status.UninjectedPods = out.NotUpgradable, c.uninjected(set, status)
	condition := metav1.Condition{
		Type: v1alpha1.SidecarSetUpgradable, Status: metav1.ConditionTrue, ObservedGeneration: set.Generation, Reason: string(accept.InPlace),
		Message: "All pods can get the latest revision in place.",
	}
	if out.NotUpgradable > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, string(accept.MustBeRecreated)
		condition.Message = "Pods must be recreated, for example by kubectl rollout restart. The first of them is " + out.Why + "."
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	planning.PutGuarded(&status.Conditions, out.Guarded, set.Generation, c.Now())
}

// postpone returns how long the write of a status in which only numbers differ waits, or zero.
func (c *Controller) postpone(set *v1alpha1.SidecarSet, status *v1alpha1.SidecarSetStatus) time.Duration {
	before := set.Status.DeepCopy()
	before.MatchedPods, before.UpdatedPods, before.ReadyPods, before.UpdatedReadyPods = status.MatchedPods, status.UpdatedPods, status.ReadyPods, status.UpdatedReadyPods
	before.NotUpgradablePods, before.UninjectedPods = status.NotUpgradablePods, status.UninjectedPods
	if equality.Semantic.DeepEqual(&set.Status, status) || !equality.Semantic.DeepEqual(before, status) {
		return 0
	}
	var left time.Duration
	c.states.update(set, func(s *setState) { left = s.reported.Add(reportPause).Sub(c.Now()) })
	return max(left, 0)
}
