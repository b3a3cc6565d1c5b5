// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
)

// noServiceAccount is what API servers say about a service account that does not exist yet: controllers create the default
// one of a new namespace.
const noServiceAccount = "error looking up service account"

// remembered is what the process remembers about a job.
type remembered struct {
	progress *imagepull.Progress
	// job and pods are the resource versions that were written last, empty if none were.
	job, pods string
	// deleted are the pods that were deleted and that the cache still has.
	deleted map[types.UID]bool
	// unsure are the pulls whose creation was not answered.
	unsure []imagepull.Start
	// planned and written are when the last plan was made and when the status was written.
	planned, written time.Time
}

// carryOut deletes the pods of the plan, and creates those for which there are places. The error is why it must be tried
// again.
func (c *Controller) carryOut(ctx context.Context, job *v1alpha1.ImagePullJob, known *remembered, pods []*corev1.Pod, plan *imagepull.Plan) error {
	if err := c.delete(ctx, known, pods, plan); err != nil {
		return err
	}
	granted, others := c.places.take(claimOf(job), nodesOf(pods), plan.Start, plan.Limit)
	c.inbox.Enqueue(others...)
	for i, start := range granted {
		pull, err := c.create(ctx, job, start)
		switch {
		case err == nil:
			known.progress.Created(start.Node)
			known.pods = pull.ResourceVersion
			c.created(plan)
			plan.Wake(c.Now().Add(statusPause)) // The next plan knows when the pull times out.
		case !isRefused(err):
			if !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				known.progress.Created(start.Node)
				known.unsure = append(known.unsure, start)
			}
			return err
		case apierrors.IsForbidden(err) && (len(pods)+i > 0 || strings.Contains(err.Error(), noServiceAccount)):
			c.refused(job, plan, err)
			plan.Wake(c.Now().Add(refusedPause))
			return nil
		default:
			c.refused(job, plan, err)
			known.progress.Refused(start.Node, "Refused: "+text.Truncate(err.Error(), imagepull.MaxText))
			plan.Wake(c.Now())
		}
	}
	return nil
}

// created records in the status that the API server accepts pods again.
func (c *Controller) created(plan *imagepull.Plan) {
	for i := range plan.Status.Conditions {
		if each := plan.Status.Conditions[i]; each.Type == v1alpha1.ImagePullJobPullsCreated && each.Status == metav1.ConditionFalse {
			imagepull.SetCondition(&plan.Status, metav1.Condition{
				Type: each.Type, Status: metav1.ConditionTrue, Reason: "Created", Message: "The last pod was created.",
			}, c.Now())
		}
	}
}

// refused records that the API server has refused a pod.
func (c *Controller) refused(job *v1alpha1.ImagePullJob, plan *imagepull.Plan, err error) {
	c.Metrics.Failed(imagepull.Kind().Kind)
	condition := metav1.Condition{
		Type: v1alpha1.ImagePullJobPullsCreated, Status: metav1.ConditionFalse, Reason: "Refused", Message: text.Truncate(err.Error(), imagepull.MaxText),
	}
	if imagepull.SetCondition(&plan.Status, condition, c.Now()) {
		c.Recorder.Event(job, corev1.EventTypeWarning, "FailedCreate", condition.Message)
	}
}

// isRefused reports whether no other attempt helps: a policy, a quota or the API server refuses the pod, or its name
// belongs to another one.
func isRefused(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err)
}

// delete deletes pods that were not deleted yet.
func (c *Controller) delete(ctx context.Context, known *remembered, cached []*corev1.Pod, plan *imagepull.Plan) error {
	going := map[types.UID]bool{}
	for _, pod := range cached {
		if known.deleted[pod.UID] {
			going[pod.UID] = true
		}
	}
	known.deleted = going
	for _, pod := range plan.Delete {
		if going[pod.UID] {
			continue
		}
		err := c.Client.Delete(ctx, pod.DeepCopy(), client.Preconditions{UID: &pod.UID})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			going[pod.UID] = true
		case apierrors.IsConflict(err):
			plan.Wake(c.Now().Add(conflictPause)) // The kubelet has written its status meanwhile.
		default:
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// create creates the pod of a pull, or finds the one whose creation was not answered.
func (c *Controller) create(ctx context.Context, job *v1alpha1.ImagePullJob, start imagepull.Start) (*corev1.Pod, error) {
	pod := imagepull.Pod(job, start.Node.Name, start.Attempt)
	key := client.ObjectKeyFromObject(pod)
	err := c.Client.Create(ctx, pod, client.FieldOwner(v1alpha1.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			err = fmt.Errorf("create pod %s: %w", key.Name, err)
		}
		return pod, err
	}
	found, owned, getErr := c.get(ctx, job, key)
	switch {
	case getErr != nil:
		return nil, getErr
	case !owned:
		return nil, fmt.Errorf("create pod %s, whose name belongs to another object: %w", key.Name, err)
	default:
		return found, nil
	}
}

// get returns a pod, and whether it is one of the job.
func (c *Controller) get(ctx context.Context, job *v1alpha1.ImagePullJob, key types.NamespacedName) (*corev1.Pod, bool, error) {
	pod := &corev1.Pod{}
	if err := c.Live.Get(ctx, key, pod); err != nil {
		return nil, false, fmt.Errorf("get pod %s: %w", key.Name, err)
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return pod, owner != nil && owner.UID == job.UID, nil
}

// find finds out which pods exist whose creation was not answered.
func (c *Controller) find(ctx context.Context, job *v1alpha1.ImagePullJob, known *remembered) error {
	for len(known.unsure) > 0 {
		start := known.unsure[0]
		key := types.NamespacedName{Namespace: job.Namespace, Name: imagepull.Name(job.UID, start.Node.Name, start.Attempt)}
		pod, owned, err := c.get(ctx, job, key)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case owned:
			known.pods = pod.ResourceVersion
		default:
			known.progress.Missing(start.Node)
		}
		known.unsure = known.unsure[1:]
	}
	return nil
}
