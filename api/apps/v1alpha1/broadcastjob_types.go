// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// BroadcastJobNameKey is the label of the pods of a BroadcastJob with its name.
	BroadcastJobNameKey = "broadcastjob-name"
	// BroadcastJobUIDKey is the label of the pods of a BroadcastJob with its UID.
	BroadcastJobUIDKey = "broadcastjob-controller-uid"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bcj
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.desired`,description="The number of nodes."
// +kubebuilder:printcolumn:name="ACTIVE",type=integer,JSONPath=`.status.active`,description="The number of nodes on which a pod runs or waits."
// +kubebuilder:printcolumn:name="SUCCEEDED",type=integer,JSONPath=`.status.succeeded`,description="The number of nodes on which the pod succeeded."
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`,description="The number of nodes on which the pod failed."
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`,description="running, paused, completed or failed."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`

// BroadcastJob runs a pod to its end once on each node that fits its template.
type BroadcastJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 63 characters, because it is a label of the pods.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods, and when the job ends.
	// +required
	Spec BroadcastJobSpec `json:"spec,omitempty"`

	// status is the status of the job, set by Seamark.
	// +optional
	Status BroadcastJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// BroadcastJobList is a list of BroadcastJobs.
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of BroadcastJobs.
	Items []BroadcastJob `json:"items"`
}

// BroadcastJobSpec is the desired state of a BroadcastJob.
type BroadcastJobSpec struct {
	// parallelism is the maximum number of pods that run at the same time: a number, at least 0, or a percentage of the
	// nodes that fit, 0% to 100%, rounded up. By default, all run at the same time. Unless the failure policy is
	// Continue, nodes are taken in steps of this size: the next step begins when all pods of the last have succeeded.
	// +optional
	// +kubebuilder:default=2147483647
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`

	// template is the template of the pods. A pod runs on each node that its nodeName, nodeSelector and required node
	// affinity select, and whose taints it tolerates. restartPolicy is OnFailure, the default, or Never. A change takes
	// effect on nodes that have no pod yet.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// completionPolicy defines when the job ends.
	// +optional
	// +kubebuilder:default={}
	CompletionPolicy BroadcastJobCompletionPolicy `json:"completionPolicy"`

	// paused stops the creation of pods. Pods that exist go on, and the job does not end.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// failurePolicy defines what happens when a pod fails.
	// +optional
	// +kubebuilder:default={}
	FailurePolicy BroadcastJobFailurePolicy `json:"failurePolicy,omitempty"`
}

// BroadcastJobCompletionPolicy defines when a BroadcastJob ends.
type BroadcastJobCompletionPolicy struct {
	// type is Always, which ends the job when the pod of each node has ended, or Never, which also runs a pod on nodes
	// that join later.
	// +optional
	// +kubebuilder:default=Always
	// +kubebuilder:validation:Enum=Always;Never
	Type BroadcastJobCompletionType `json:"type,omitempty"`

	// activeDeadlineSeconds is how long after status.startTime the job fails if it has not completed. It must not be set
	// if type is Never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long after its end the job is deleted, with its pods. If it is not set, the job is
	// kept. It must not be set if type is Never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// BroadcastJobCompletionType is when a BroadcastJob ends.
type BroadcastJobCompletionType string

// The completion types.
const (
	BroadcastJobAlways BroadcastJobCompletionType = "Always"
	BroadcastJobNever  BroadcastJobCompletionType = "Never"
)

// BroadcastJobFailurePolicy defines what happens when a pod fails.
type BroadcastJobFailurePolicy struct {
	// type is FailFast, which fails the job and deletes the pods that have not ended, Continue, which lets the other
	// nodes run, or Pause, which creates no more pods while there is a failed one.
	// +optional
	// +kubebuilder:default=FailFast
	// +kubebuilder:validation:Enum=FailFast;Continue;Pause
	Type BroadcastJobFailureType `json:"type,omitempty"`

	// restartLimit is how often the containers of a pod may restart in total, with restartPolicy OnFailure. A pod with
	// more restarts is stopped, and has failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobFailureType is what happens when a pod fails.
type BroadcastJobFailureType string

// The failure types.
const (
	BroadcastJobFailFast BroadcastJobFailureType = "FailFast"
	BroadcastJobContinue BroadcastJobFailureType = "Continue"
	BroadcastJobPause    BroadcastJobFailureType = "Pause"
)

// BroadcastJobStatus is the observed state of a BroadcastJob.
type BroadcastJobStatus struct {
	// conditions are Complete, Failed and PodsCreated.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// startTime is when the job began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job completed or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// active is the number of nodes whose pod has not ended.
	// +optional
	Active int32 `json:"active"`

	// succeeded is the number of nodes whose pod succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// failed is the number of nodes whose pod failed, or was ended because the job failed.
	// +optional
	Failed int32 `json:"failed"`

	// desired is the number of nodes that fit or have a pod, without those that are not ready for 5 minutes and on which no
	// pod has started.
	// +optional
	Desired int32 `json:"desired"`

	// phase is running, paused, completed or failed.
	// +optional
	Phase BroadcastJobPhase `json:"phase"`

	// observedGeneration is the generation of the spec that the status refers to. Seamark adds this field.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// BroadcastJobPhase is how far a BroadcastJob is.
type BroadcastJobPhase string

// The phases.
const (
	BroadcastJobRunning   BroadcastJobPhase = "running"
	BroadcastJobPaused    BroadcastJobPhase = "paused"
	BroadcastJobCompleted BroadcastJobPhase = "completed"
	BroadcastJobHasFailed BroadcastJobPhase = "failed"
)

// The types of the conditions of a BroadcastJob.
const (
	// BroadcastJobComplete is True if the pod of each node has ended and the job has not failed.
	BroadcastJobComplete = "Complete"
	// BroadcastJobFailed is True if a pod failed and the failure policy is FailFast, or the deadline has passed.
	BroadcastJobFailed = "Failed"
	// BroadcastJobPodsCreated is False if the API server has refused the last pod.
	BroadcastJobPodsCreated = "PodsCreated"
)
