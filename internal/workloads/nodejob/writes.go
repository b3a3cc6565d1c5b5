// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodejob

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// carryOut executes the actions of the plan. The error is why it must be tried again.
func (c *Controller[J, S, M]) carryOut(ctx context.Context, job J, expected *expectations[M], plan *planning.JobPlan[S]) error {
	if plan.Empty() {
		return nil
	}
	outcome := c.Executor.Execute(ctx, apply.Set{GroupVersionKind: c.descriptor.GroupVersionKind, Object: job}, &plan.Actions)
	expected.pods = objectversion.Newer(expected.pods, outcome.Pods)
	expected.created(plan.Creates, &outcome)
	pause := planPause // The status follows with the pods of the cache.
	if learned := c.descriptor.Learn(&expected.state, plan, &outcome); outcome.Ended || len(outcome.Failures) > 0 && !learned {
		pause = refusedPause
	}
	plan.Wake(c.Now().Add(pause))
	condition := metav1.Condition{Type: c.descriptor.Created, Status: metav1.ConditionTrue, Reason: "Created", Message: "The last pod was created."}
	switch conditions := c.descriptor.Conditions(&plan.Status); {
	case len(outcome.Failures) > 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Refused", text.Message(outcome.Failures[0].Error())
		if planning.PutCondition(conditions, condition, job.GetGeneration(), c.Now()) {
			c.Recorder.Event(job, corev1.EventTypeWarning, "FailedCreate", condition.Message)
			plan.Urgent = true
		}
	case expected.left < len(plan.Creates) && meta.IsStatusConditionFalse(*conditions, c.descriptor.Created):
		plan.Urgent = planning.PutCondition(conditions, condition, job.GetGeneration(), c.Now())
	}
	return errors.Join(outcome.Errs...)
}

// created records which pods of a plan were created.
func (e *expectations[M]) created(creates []*corev1.Pod, outcome *apply.Outcome) {
	e.left, e.unsure = 0, nil
	written, started := sets.New(outcome.Written...), len(outcome.Written)+len(outcome.Failures)+len(outcome.Errs)
	for i, pod := range creates {
		if written.Has(pod.Name) {
			continue
		}
		e.left++
		if len(outcome.Errs) > 0 && i < started {
			e.unsure = append(e.unsure, pod.Name)
		}
	}
}

// find finds out which pods exist whose creation was not answered: the cache must have them before the next plan.
func (c *Controller[J, S, M]) find(ctx context.Context, namespace string, expected *expectations[M]) error {
	for len(expected.unsure) > 0 {
		pod := &corev1.Pod{}
		key := types.NamespacedName{Namespace: namespace, Name: expected.unsure[0]}
		err := c.Live.Get(ctx, key, pod)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get pod %s: %w", key.Name, err)
		}
		if err == nil {
			expected.pods = objectversion.Newer(expected.pods, pod.ResourceVersion)
			expected.left = max(0, expected.left-1)
		}
		expected.unsure = expected.unsure[1:]
	}
	return nil
}

// publish writes the status if it differs, at most once per second unless it is urgent, and records its events. It returns
// the job with it.
func (c *Controller[J, S, M]) publish(ctx context.Context, job J, expected *expectations[M], plan *planning.JobPlan[S]) (J, error) {
	if equality.Semantic.DeepEqual(c.descriptor.Status(job), &plan.Status) {
		return job, nil
	}
	if at := expected.written.Add(statusPause); !plan.Urgent && c.Now().Before(at) {
		plan.Wake(at)
		return job, nil
	}
	written := c.copy(job)
	*c.descriptor.Status(written) = plan.Status
	written = c.copy(written) // The plan is changed after it.
	if changed, err := reconciler.WriteStatus(ctx, c.Client, c.Metrics, c.descriptor.Kind, job, written); !changed {
		return job, err
	}
	expected.job, expected.written = written.GetResourceVersion(), c.Now()
	c.record(job, plan.StatusEvents)
	plan.StatusEvents = nil
	return written, nil
}

func (*Controller[J, S, M]) copy(job J) J {
	return job.DeepCopyObject().(J) //nolint:forcetypeassert // A copy has the same type.
}

func (c *Controller[J, S, M]) record(job J, events []planning.Event) {
	for i := range events {
		c.Recorder.Event(job, events[i].Type, events[i].Reason, events[i].Message())
	}
}

// remove deletes a job whose time has passed.
func (c *Controller[J, S, M]) remove(ctx context.Context, job J) error {
	uid := job.GetUID()
	err := c.Client.Delete(ctx, c.copy(job), client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		c.Metrics.Failed(c.descriptor.Kind)
		return fmt.Errorf("delete %s %s: %w", c.descriptor.Kind, client.ObjectKeyFromObject(job), err)
	}
	return nil
}
