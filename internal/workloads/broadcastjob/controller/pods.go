// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
)

// maxMessage is the maximum length of the message of a condition, in bytes. The API server allows 32 KiB.
const maxMessage = 1024

// remembered is what the process remembers about a job.
type remembered struct {
	// job and pods are the resource versions that were written last, empty if none were.
	job, pods string
	// unsure are the names of the pods whose creation was not answered.
	unsure []string
	// taken are names of pods that belong to others.
	taken map[string]bool
	// left is the number of pods of the present step that were not created.
	left int
	// planned and written are when the last plan was made and when the status was written.
	planned, written time.Time
}

// wrote remembers the resource version of a pod that exists.
func (r *remembered) wrote(version string) {
	if order, err := resourceversion.CompareResourceVersion(r.pods, version); r.pods == "" || err == nil && order < 0 {
		r.pods = version
	}
}

// carryOut executes the actions of the plan. The error is why it must be tried again.
func (c *Controller) carryOut(ctx context.Context, job *v1alpha1.BroadcastJob, known *remembered, plan *broadcastjob.Plan) error {
	if plan.Empty() {
		return nil
	}
	step := c.Executor.Execute(ctx, apply.Set{Kind: broadcastjob.Kind(), Object: job}, &plan.Actions)
	if step.Pods != "" {
		known.wrote(step.Pods)
	}
	before := len(known.taken)
	known.created(plan, &step)
	for range len(step.Failures) + len(step.Errs) {
		c.Metrics.Failed(broadcastjob.Kind().Kind)
	}
	pause := planPause // The status follows with the pods of the cache.
	if step.Ended || len(step.Failures) > 0 && len(step.Written) == 0 && len(known.taken) == before {
		pause = refusedPause
	}
	plan.Wake(c.Now().Add(pause))
	if len(step.Failures) > 0 {
		c.refused(job, plan, &step)
	} else if len(plan.Creates) > 0 && len(step.Written) > 0 {
		c.accepted(plan)
	}
	return errors.Join(step.Errs...)
}

// created remembers which pods of the plan were created.
func (r *remembered) created(plan *broadcastjob.Plan, step *apply.Step) {
	written := sets.New(step.Written...)
	if r.taken == nil {
		r.taken = map[string]bool{}
	}
	for _, name := range step.Taken {
		r.taken[name] = true
	}
	r.left, r.unsure = 0, nil
	started := len(step.Written) + len(step.Failures) + len(step.Errs)
	for i, pod := range plan.Creates {
		if written.Has(pod.Name) {
			delete(r.taken, pod.Name)
			continue
		}
		r.left++
		if len(step.Errs) > 0 && i < started {
			r.unsure = append(r.unsure, pod.Name)
		}
	}
}

// accepted records in the status that the API server accepts pods again.
func (c *Controller) accepted(plan *broadcastjob.Plan) {
	if meta.IsStatusConditionFalse(plan.Status.Conditions, v1alpha1.BroadcastJobPodsCreated) {
		broadcastjob.SetCondition(&plan.Status, metav1.Condition{
			Type: v1alpha1.BroadcastJobPodsCreated, Status: metav1.ConditionTrue, Reason: "Created", Message: "The last pod was created.",
		}, c.Now())
		plan.Urgent = true
	}
}

// refused records that the API server has refused a write.
func (c *Controller) refused(job *v1alpha1.BroadcastJob, plan *broadcastjob.Plan, step *apply.Step) {
	failure := step.Failures[0]
	condition := metav1.Condition{
		Type: v1alpha1.BroadcastJobPodsCreated, Status: metav1.ConditionFalse, Reason: "Refused",
		Message: text.Truncate(failure.Object+": "+failure.Err.Error(), maxMessage),
	}
	if broadcastjob.SetCondition(&plan.Status, condition, c.Now()) {
		c.Recorder.Event(job, corev1.EventTypeWarning, "FailedCreate", condition.Message)
		plan.Urgent = true
	}
}

// find finds out which pods exist whose creation was not answered: the cache must have them before the next plan.
func (c *Controller) find(ctx context.Context, job *v1alpha1.BroadcastJob, known *remembered) error {
	for len(known.unsure) > 0 {
		pod := &corev1.Pod{}
		key := types.NamespacedName{Namespace: job.Namespace, Name: known.unsure[0]}
		err := c.Live.Get(ctx, key, pod)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get pod %s: %w", key.Name, err)
		}
		if err == nil {
			known.wrote(pod.ResourceVersion)
			known.left = max(0, known.left-1)
		}
		known.unsure = known.unsure[1:]
	}
	return nil
}
