// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// trimPause is when finished Jobs are deleted again that could not be deleted.
const trimPause = 30 * time.Second

// carryOut deletes and creates Jobs. A Job that replaces others is created only when the API server has accepted their
// deletion. If one was created, the status and the history follow when the cache has it; otherwise carryOut completes the
// status of the plan. The error is why it must be tried again.
func (c *Controller) carryOut(ctx context.Context, object *v1alpha1.AdvancedCronJob, expected *expectations, plan *cronjob.Plan) (created bool, err error) {
	if err := c.delete(ctx, object, plan.Replace); err != nil {
		plan.Retry()
		return false, err
	}
	if expected.created {
		planning.PutCondition(&plan.Status.Conditions, metav1.Condition{
			Type: v1alpha1.AdvancedCronJobJobsCreated, Status: metav1.ConditionTrue, Reason: "Created", Message: "The last Job was created.",
		}, object.Generation, c.Now())
	}
	if plan.Create.IsZero() {
		c.trim(ctx, object, plan)
		return false, nil
	}
	job, err := c.create(ctx, object, plan)
	if err == nil {
		expected.creates(job, plan.Create)
		return true, nil
	}
	c.trim(ctx, object, plan) // Finished Jobs may use up the quota.
	condition := metav1.Condition{
		Type: v1alpha1.AdvancedCronJobJobsCreated, Status: metav1.ConditionFalse, Reason: "Refused", Message: text.Message(err.Error()),
	}
	if planning.PutCondition(&plan.Status.Conditions, condition, object.Generation, c.Now()) {
		c.Recorder.Event(object, corev1.EventTypeWarning, "FailedCreate", condition.Message)
	}
	var foreign *foreignError
	if errors.As(err, &foreign) {
		return false, nil // Another scheduled time has another name.
	}
	plan.Retry()
	return false, err
}

// trim deletes the Jobs beyond the limits of the history. If the API server refuses it, runs go on.
func (c *Controller) trim(ctx context.Context, object *v1alpha1.AdvancedCronJob, plan *cronjob.Plan) {
	err := c.delete(ctx, object, plan.Delete)
	if err == nil {
		return
	}
	log.FromContext(ctx).Error(err, "Failed to delete finished Jobs")
	c.Metrics.Failed(Kind().Kind)
	plan.Next = earliest.Time(plan.Next, c.Now().Add(trimPause))
}

// delete deletes Jobs of the object with their pods.
func (c *Controller) delete(ctx context.Context, object *v1alpha1.AdvancedCronJob, jobs []cronjob.Job) error {
	for _, job := range jobs {
		if job.GetNamespace() != object.Namespace {
			return &owner.ForeignError{Set: owner.Describe(Kind().Kind, object), Object: owner.Describe(job.Kind, job)}
		}
		gone, uid := &metav1.PartialObjectMetadata{}, job.GetUID()
		gone.SetGroupVersionKind(job.GroupVersionKind)
		gone.Namespace, gone.Name = job.GetNamespace(), job.GetName()
		err := c.Client.Delete(ctx, gone, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s %s: %w", job.Kind, job.GetName(), err)
		}
	}
	return nil
}

// foreignError means that an object that does not belong to the AdvancedCronJob has the name of a Job.
type foreignError struct{ kind, name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s exists, and belongs to another object: the run is dropped", e.kind, e.name)
}

// create creates the Job of the plan, or finds the one whose creation was not answered.
func (c *Controller) create(ctx context.Context, object *v1alpha1.AdvancedCronJob, plan *cronjob.Plan) (*cronjob.Job, error) {
	job, err := newJob(object, plan)
	if err != nil {
		return nil, err
	}
	key, kind := client.ObjectKeyFromObject(job), job.GroupVersionKind()
	err = c.Client.Create(ctx, job, client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(kind)
		if err := c.Live.Get(ctx, key, found); err != nil {
			return nil, fmt.Errorf("get %s %s: %w", kind.Kind, key.Name, err)
		}
		if !owner.Of(Kind(), object).Controls(found) {
			return nil, &foreignError{kind.Kind, key.Name}
		}
		return &cronjob.Job{Object: found, GroupVersionKind: kind}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", kind.Kind, key.Name, err)
	}
	return &cronjob.Job{Object: job, GroupVersionKind: kind}, nil
}

// newJob returns the Job of the plan. Its specification is that of the template, also with fields that this program
// does not know.
func newJob(object *v1alpha1.AdvancedCronJob, plan *cronjob.Plan) (*unstructured.Unstructured, error) {
	var template struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	from, field := cronjob.Template(&object.Spec)
	if err := json.Unmarshal(from.Raw, &template); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	annotations := map[string]string{}
	maps.Copy(annotations, template.Metadata.Annotations)
	annotations[v1alpha1.ScheduledAtKey] = plan.ScheduledAt()
	job := &unstructured.Unstructured{Object: map[string]any{"spec": template.Spec}}
	job.SetGroupVersionKind(cronjob.Kind(plan.Status.Type))
	job.SetNamespace(object.Namespace)
	job.SetName(cronjob.Name(object, plan.Create))
	job.SetLabels(template.Metadata.Labels)
	job.SetAnnotations(annotations)
	job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(object, Kind())})
	return job, nil
}
