// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cronjob decides what an AdvancedCronJob does next: which Job or BroadcastJob it creates and which it deletes,
// when it looks again, and what its status is. A scheduled time that the status names is never started again, whether or not its
// Job still exists. It is pure. Its names and comments mean both kinds with Job.
package cronjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/schedule"
)

const (
	// maxActive is the number of Jobs in status.active.
	maxActive = 100
	// maxMissed is up to which number missed scheduled times are counted.
	maxMissed = 1000
)

// Input is what a plan depends on.
type Input struct {
	// Object is the AdvancedCronJob. Its status is not older than what was written last.
	Object *v1alpha1.AdvancedCronJob
	// Jobs are those that the object controls, all that were created.
	Jobs []Job
	// Broadcasts is whether BroadcastJobs are served.
	Broadcasts bool
	// Started is the last scheduled time that was started, in case that the status does not have it, or nil.
	Started *metav1.Time
	// Now is the time.
	Now time.Time
}

// Plan is what to do: first the replaced Jobs, then the creation, then the status, then the history, which must not keep
// a run from starting.
type Plan struct {
	// Replace are active Jobs to delete before the creation, and Delete those beyond the limits of the history.
	Replace, Delete []Job
	// Create is the scheduled time whose Job is to be created, or zero.
	Create time.Time
	// Status is the status without the new Job. If one is created, the next plan has the whole status.
	Status v1alpha1.AdvancedCronJobStatus
	// Next is when to plan again without an event, zero for never.
	Next time.Time
	// Events are to be recorded.
	Events []Event

	// last is the last scheduled time before Create.
	last *metav1.Time
}

// Event is an event about scheduled times.
type Event struct {
	Type, Reason, Message string
}

// The reasons of the condition Scheduled and of events.
const (
	ReasonScheduled       = "Scheduled"
	ReasonPaused          = "Paused"
	ReasonInvalidSchedule = "InvalidSchedule"
	ReasonUnknownTimeZone = "UnknownTimeZone"
	ReasonNeverRuns       = "NeverRuns"
	ReasonUnsupported     = "UnsupportedTemplate"

	ReasonMissedRuns     = "MissedRuns"
	ReasonMissedDeadline = "MissedDeadline"
)

// planner is a plan in the making.
type planner struct {
	Input
	Plan
	schedule schedule.Schedule
	// active are the Jobs that have not ended and are not being deleted, the oldest first.
	active []Job
}

// New returns the plan.
func New(in Input) Plan {
	p := &planner{Input: in}
	p.Status = *in.Object.Status.DeepCopy()
	p.Status.Type, p.Status.ObservedGeneration = v1alpha1.JobTemplateKind, in.Object.Generation
	if in.Object.Spec.Template.BroadcastJobTemplate != nil {
		p.Status.Type = v1alpha1.BroadcastJobTemplateKind
	}
	p.observe()
	p.trim()
	template, _ := Template(&in.Object.Spec)
	parsed, err := schedule.Parse(in.Object.Spec.Schedule, ptr.Deref(in.Object.Spec.TimeZone, ""))
	p.schedule = parsed
	switch {
	case p.Status.Type == v1alpha1.BroadcastJobTemplateKind && !in.Broadcasts:
		p.stop(ReasonUnsupported, "spec.template.broadcastJobTemplate: the controller broadcastJob of seamark-workloads is disabled")
	case template == nil:
		p.stop(ReasonUnsupported, "spec.template: only jobTemplate and broadcastJobTemplate are supported")
	case errors.Is(err, schedule.ErrZone):
		p.stop(ReasonUnknownTimeZone, "spec.timeZone: "+err.Error())
	case err != nil:
		p.stop(ReasonInvalidSchedule, fmt.Sprintf("spec.schedule: %q: %s", in.Object.Spec.Schedule, err))
	default:
		p.see()
		p.run()
	}
	return p.Plan
}

// Template returns the template of what is created, or nil, and its field.
func Template(spec *v1alpha1.AdvancedCronJobSpec) (template *runtime.RawExtension, field string) {
	if spec.Template.BroadcastJobTemplate != nil {
		return spec.Template.BroadcastJobTemplate, "spec.template.broadcastJobTemplate"
	}
	return spec.Template.JobTemplate, "spec.template.jobTemplate"
}

// Identity returns the schedule with its time zone: a schedule is another one if this text is.
func Identity(spec *v1alpha1.AdvancedCronJobSpec) string {
	if zone := ptr.Deref(spec.TimeZone, ""); zone != "" {
		return "TZ=" + zone + " " + spec.Schedule
	}
	return strings.TrimPrefix(strings.TrimSpace(spec.Schedule), "CRON_")
}

// Name returns the name of the Job of a scheduled time, which is that of OpenKruise.
func Name(object *v1alpha1.AdvancedCronJob, scheduled time.Time) string {
	return fmt.Sprintf("%s-%d", object.Name, scheduled.Unix())
}

// observe sets what the status says about Jobs.
func (p *planner) observe() {
	for _, job := range p.Jobs {
		if job.Ended == "" && job.GetDeletionTimestamp() == nil {
			p.active = append(p.active, job)
		}
		at, last := job.CompletionTime, p.Status.LastSuccessfulTime
		if job.Ended == batchv1.JobComplete && at != nil && (last == nil || last.Before(at)) {
			p.Status.LastSuccessfulTime = at.DeepCopy()
		}
	}
	slices.SortFunc(p.active, older)
	p.Status.Active = nil
	for _, job := range p.active[:min(len(p.active), maxActive)] {
		p.Status.Active = append(p.Status.Active, job.reference())
	}
}

// trim deletes the oldest finished Jobs beyond the limits. A Job whose scheduled time the stored status does not name yet is kept:
// it shows that the scheduled time was started.
func (p *planner) trim() {
	for end, limit := range map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: p.Object.Spec.SuccessfulJobsHistoryLimit, batchv1.JobFailed: p.Object.Spec.FailedJobsHistoryLimit,
	} {
		if limit == nil {
			continue
		}
		var kept []Job
		for _, job := range p.Jobs {
			if job.Ended != end || job.GetDeletionTimestamp() != nil {
				continue
			}
			if !p.isRecorded(&job) {
				p.Next = p.Now.Add(time.Second)
			} else {
				kept = append(kept, job)
			}
		}
		slices.SortFunc(kept, older)
		p.Delete = append(p.Delete, kept[:max(0, len(kept)-int(*limit))]...)
	}
	slices.SortFunc(p.Delete, older)
}

// isRecorded reports whether the stored status names the scheduled time of the Job or a later one.
func (p *planner) isRecorded(job *Job) bool {
	last := p.Object.Status.LastScheduleTime
	scheduled, ok := job.scheduledTime()
	return !ok || scheduled.After(p.Now) || last != nil && !scheduled.After(last.Time)
}

// stop records why no further run follows.
func (p *planner) stop(reason, message string) {
	p.Status.NextScheduleTime = nil
	p.condition(metav1.ConditionFalse, reason, message)
}

func (p *planner) condition(status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{Type: v1alpha1.AdvancedCronJobScheduled, Status: status, Reason: reason, Message: message}
	planning.PutCondition(&p.Status.Conditions, condition, p.Object.Generation, p.Now)
}

// see records when the schedule was first seen, and the last scheduled time whose Job exists: the status may not have been
// written, or be OpenKruise's.
func (p *planner) see() {
	times := []time.Time{}
	if p.Started != nil {
		times = append(times, p.Started.Time)
	}
	for _, job := range p.Jobs {
		if scheduled, ok := job.scheduledTime(); ok {
			times = append(times, scheduled)
		}
	}
	for _, scheduled := range times {
		if last := p.Status.LastScheduleTime; !scheduled.After(p.Now) && (last == nil || scheduled.After(last.Time)) {
			p.done(scheduled)
		}
	}
	identity := Identity(&p.Object.Spec)
	if p.Status.ObservedSchedule == identity && p.Status.Since != nil {
		return
	}
	since := metav1.NewTime(p.Now.Truncate(time.Second))
	switch {
	case p.Status.ObservedSchedule != "":
		// An edit causes no run for a time that has passed.
	case p.isForgotten():
		// The scheduled times that have passed were started, and their Jobs are gone.
	case p.Object.Generation == 1:
		since = p.Object.CreationTimestamp
	case p.Status.LastScheduleTime != nil:
		// OpenKruise has run the object: the scheduled times since its last one are missed runs.
		since = *p.Status.LastScheduleTime
	}
	p.Status.Since, p.Status.ObservedSchedule = &since, identity
}

// isForgotten reports whether OpenKruise, which does not set the condition, has processed the object and left no scheduled time:
// it knows those of Jobs that exist, and writes them when it processes the object again.
func (p *planner) isForgotten() bool {
	before := &p.Object.Status
	return before.Type != "" && p.Status.LastScheduleTime == nil && meta.FindStatusCondition(before.Conditions, v1alpha1.AdvancedCronJobScheduled) == nil
}

// ConditionSeverity returns the severity of a condition of an AdvancedCronJob.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	if c.Type == v1alpha1.AdvancedCronJobScheduled && c.Reason == ReasonPaused {
		return planning.SeverityWaiting
	}
	return planning.SuccessSeverity(c)
}
