// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ScheduledAtKey is the annotation of a Job or BroadcastJob that contains the slot for which it was created, in RFC 3339.
const ScheduledAtKey = "apps.kruise.io/scheduled-at"

// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=acj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="SCHEDULE",type=string,JSONPath=`.spec.schedule`,description="The schedule."
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=`.status.type`,description="The kind of what is created."
// +kubebuilder:printcolumn:name="LAST",type=date,JSONPath=`.status.lastScheduleTime`,description="How long ago the last slot was."
// +kubebuilder:printcolumn:name="NEXT",type=string,JSONPath=`.status.nextScheduleTime`,description="The next slot."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`

// AdvancedCronJob creates a Job or a BroadcastJob at each time of a cron schedule.
type AdvancedCronJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 52 characters, because those of the Jobs
	// have 11 more.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the schedule and the Jobs.
	// +required
	Spec AdvancedCronJobSpec `json:"spec,omitempty"`

	// status is the status of the object, set by Seamark. It is always stored, because clients read it
	// without asking whether it exists.
	// +optional
	// +kubebuilder:default={}
	Status AdvancedCronJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// AdvancedCronJobList is a list of AdvancedCronJobs.
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of AdvancedCronJobs.
	Items []AdvancedCronJob `json:"items"`
}

// AdvancedCronJobSpec is the desired state of an AdvancedCronJob.
type AdvancedCronJobSpec struct {
	// schedule is a cron schedule of five fields, a descriptor from @yearly to @hourly, or @every with a duration
	// of at least 1s. The prefix TZ=ZONE or CRON_TZ=ZONE, with a space, means the same as timeZone. A schedule
	// whose minute and hour do not begin with * runs exactly once for each local time, also if the clocks skip
	// or repeat it. All others run at each time that the clocks show.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule"`

	// timeZone is the name of the time zone in the IANA database. Default Etc/UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone *string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how late a Job may be created. A run that is later is dropped. If it is not
	// set, the last missed run is made up.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// concurrencyPolicy is what happens when a run is due while an earlier Job is active: Allow creates
	// another one, Forbid waits until it has ended, and Replace deletes it first.
	// +optional
	// +kubebuilder:default=Allow
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// paused stops new runs. Active Jobs continue. When it becomes false, the last missed run is made up.
	// +optional
	// +kubebuilder:default=false
	Paused *bool `json:"paused,omitempty"`

	// successfulJobsHistoryLimit is the maximum number of succeeded Jobs that are kept.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is the maximum number of failed Jobs that are kept.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// template is what is created.
	// +required
	Template CronJobTemplate `json:"template"`
}

// ConcurrencyPolicy is what happens when a run is due while an earlier Job is active.
type ConcurrencyPolicy string

// The concurrency policies.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobTemplate is what an AdvancedCronJob creates.
type CronJobTemplate struct {
	// jobTemplate is the template of the Jobs: metadata and spec. A change takes effect with the next run.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	JobTemplate *runtime.RawExtension `json:"jobTemplate,omitempty"`

	// broadcastJobTemplate is the template of BroadcastJobs: metadata and spec. Exactly one of jobTemplate and
	// broadcastJobTemplate must be set. A change takes effect with the next run.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	BroadcastJobTemplate *runtime.RawExtension `json:"broadcastJobTemplate,omitempty"`

	// imageListPullJobTemplate is not supported.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	ImageListPullJobTemplate *runtime.RawExtension `json:"imageListPullJobTemplate,omitempty"`
}

// CronJobTemplateKind is the kind of what an AdvancedCronJob creates.
type CronJobTemplateKind string

// The kinds of what an AdvancedCronJob creates.
const (
	JobTemplateKind          CronJobTemplateKind = "Job"
	BroadcastJobTemplateKind CronJobTemplateKind = "BroadcastJob"
)

// AdvancedCronJobStatus is the observed state of an AdvancedCronJob.
type AdvancedCronJobStatus struct {
	// type is the kind of what is created: Job or BroadcastJob.
	// +optional
	Type CronJobTemplateKind `json:"type,omitempty"`

	// active are the Jobs and BroadcastJobs that have not ended, at most 100, the oldest first.
	// +optional
	// +listType=atomic
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// lastScheduleTime is the last slot that was started or dropped. It never goes back: no slot is started
	// again.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the next slot. Seamark adds this field.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// lastSuccessfulTime is when a Job last succeeded. Seamark adds this field.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// observedGeneration is the generation of the spec that the status refers to. Seamark adds this field.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// since is when the present schedule was first seen: slots before it do not run, and the periods of @every
	// begin then. Seamark adds this field.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// observedSchedule is the schedule that since refers to, with its time zone. Seamark adds this field.
	// +optional
	ObservedSchedule string `json:"observedSchedule,omitempty"`

	// conditions are Scheduled and JobsCreated. Seamark adds this field.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of the conditions of an AdvancedCronJob.
const (
	// AdvancedCronJobScheduled is False if no further run follows.
	AdvancedCronJobScheduled = "Scheduled"
	// AdvancedCronJobJobsCreated is False if the API server has refused the last Job.
	AdvancedCronJobJobsCreated = "JobsCreated"
)
