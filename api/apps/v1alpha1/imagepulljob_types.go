// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// ImagePullJobKey is the only label of the pod of a pull. Its value is the name of the job, cut to 63
	// characters.
	ImagePullJobKey = "seamark.dev/image-pull-job"
	// ImagePullAttemptKey is the annotation of the pod of a pull with the number of the attempt, from 0.
	ImagePullAttemptKey = "seamark.dev/image-pull-attempt"
	// ServiceAccountKey is the annotation of an ImagePullJob with the name of the service account of the pods,
	// whose pull secrets and registry identity the kubelets use.
	ServiceAccountKey = "seamark.dev/service-account"

	// PreDownloadParallelismKey is the annotation of a CloneSet, StatefulSet or DaemonSet with the parallelism of the
	// ImagePullJobs that pull the images of an update: a number, at least 1, or a percentage. Default 1.
	PreDownloadParallelismKey = "apps.kruise.io/image-predownload-parallelism"
	// PreDownloadTimeoutKey is the annotation with their timeoutSeconds. Default 300.
	PreDownloadTimeoutKey = "apps.kruise.io/image-predownload-timeout-seconds"
	// PreDownloadMinUpdatedReadyKey is the annotation with the number of updated pods, or their percentage, that must be
	// ready before the jobs are created. Default 0.
	PreDownloadMinUpdatedReadyKey = "apps.kruise.io/image-predownload-min-updated-ready-pods"
	// PreDownloadCreatedKey is the label of a ControllerRevision whose jobs exist. For OpenKruise, it must exist; the value
	// is the generation of the set for which the jobs were created.
	PreDownloadCreatedKey = "apps.kruise.io/pre-predownload-created"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.desired`,description="The number of nodes."
// +kubebuilder:printcolumn:name="ACTIVE",type=integer,JSONPath=`.status.active`,description="The number of running pulls."
// +kubebuilder:printcolumn:name="SUCCEED",type=integer,JSONPath=`.status.succeeded`,description="The number of nodes that have pulled the image."
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`,description="The number of nodes on which the pull failed."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`,description="The result, or what the job waits for."

// ImagePullJob pulls an image on nodes, before pods need it.
type ImagePullJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The annotation seamark.dev/service-account names the service
	// account whose pull secrets and registry identity are used. Seamark adds it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the image and the nodes.
	// +required
	Spec ImagePullJobSpec `json:"spec,omitempty"`

	// status is the status of the object, set by Seamark.
	// +optional
	Status ImagePullJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ImagePullJobList is a list of ImagePullJobs.
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of ImagePullJobs.
	Items []ImagePullJob `json:"items"`
}

// ImagePullJobSpec is the desired state of an ImagePullJob.
type ImagePullJobSpec struct {
	// image is the image to pull: its name, with a tag or a digest. It cannot be changed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// pullSecrets are the names of Secrets in the namespace of the job with the credentials of registries. Only the
	// kubelets of the nodes read them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PullSecrets []string `json:"pullSecrets,omitempty"`

	// selector selects the nodes, by names or by labels. Without selector and podSelector, all nodes are selected. It
	// cannot be changed.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`

	// podSelector selects the nodes on which pods of the namespace of the job run that have the labels. It must not be
	// set together with selector. It cannot be changed.
	// +optional
	PodSelector *ImagePullJobPodSelector `json:"podSelector,omitempty"`

	// parallelism is the maximum number of nodes that pull at the same time: a number, at least 0, or a percentage of
	// the selected nodes, 0% to 100%, rounded up. 0 pauses the job.
	// +optional
	// +kubebuilder:default=1
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`

	// pullPolicy limits the pull of each node.
	// +optional
	// +kubebuilder:default={}
	PullPolicy *ImagePullJobPullPolicy `json:"pullPolicy,omitempty"`

	// completionPolicy defines when the job ends.
	// +optional
	// +kubebuilder:default={}
	CompletionPolicy ImagePullJobCompletionPolicy `json:"completionPolicy"`

	// sandboxConfig is not supported.
	// +optional
	SandboxConfig *ImagePullJobSandboxConfig `json:"sandboxConfig,omitempty"`

	// imagePullPolicy is IfNotPresent, which skips nodes that have the image, or Always, which asks the registry on
	// each node whether the image has changed.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=IfNotPresent;Always
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobNodeSelector selects nodes.
type ImagePullJobNodeSelector struct {
	// names are the names of nodes, in the order of the pulls. They must not be set together with labels.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobPodSelector selects pods.
type ImagePullJobPodSelector struct {
	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobPullPolicy limits the pull of a node.
type ImagePullJobPullPolicy struct {
	// timeoutSeconds is how long an attempt may take, at most a day.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// backoffLimit is the number of attempts after the first.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// ImagePullJobCompletionPolicy defines when a job ends.
type ImagePullJobCompletionPolicy struct {
	// type is Always, which ends the job when each node has succeeded or failed, or Never, which also pulls the image
	// on nodes that join later, and if imagePullPolicy is Always again on all nodes every 24 hours after status.startTime.
	// +optional
	// +kubebuilder:default=Always
	// +kubebuilder:validation:Enum=Always;Never
	Type ImagePullJobCompletionType `json:"type,omitempty"`

	// activeDeadlineSeconds is how long after status.startTime the job ends with the nodes that are left as failed.
	// It must not be set if type is Never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long after its end the job is deleted. If it is not set, the job is kept. It must
	// not be set if type is Never.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ImagePullJobCompletionType is when a job ends.
type ImagePullJobCompletionType string

// The completion types.
const (
	CompleteAlways ImagePullJobCompletionType = "Always"
	CompleteNever  ImagePullJobCompletionType = "Never"
)

// ImagePullJobSandboxConfig is metadata for the sandbox of a pull.
type ImagePullJobSandboxConfig struct {
	// labels are not supported.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are not supported.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullJobStatus is the observed state of an ImagePullJob.
type ImagePullJobStatus struct {
	// startTime is when the job began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// desired is the number of nodes.
	Desired int32 `json:"desired"`

	// active is the number of running pulls.
	// +optional
	Active int32 `json:"active"`

	// succeeded is the number of nodes that have the image.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// failed is the number of nodes whose pull failed.
	// +optional
	Failed int32 `json:"failed"`

	// message is the result, or what the job waits for.
	// +optional
	Message string `json:"message,omitempty"`

	// failedNodes are the names of the first 100 nodes whose pull failed.
	// +optional
	// +listType=atomic
	FailedNodes []string `json:"failedNodes,omitempty"`

	// observedGeneration is the generation of the spec that the status refers to. Seamark adds this field.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// passTime is when the present pass over the nodes was due. It is not set before the second pass. Seamark adds this
	// field.
	// +optional
	PassTime *metav1.Time `json:"passTime,omitempty"`

	// cursor is the name of a node. The nodes up to it, in the order of the pulls, have succeeded or failed in the present
	// pass, except for those in pulling and those that joined after both the condition Complete changed and passTime.
	// Seamark adds this field.
	// +optional
	Cursor string `json:"cursor,omitempty"`

	// pulling are the names of the nodes up to cursor that have neither succeeded nor failed. Seamark adds this field.
	// +optional
	// +listType=atomic
	Pulling []string `json:"pulling,omitempty"`

	// conditions are Complete and PullsCreated. Seamark adds this field.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of the conditions of an ImagePullJob.
const (
	// ImagePullJobComplete is True if each node has succeeded or failed, or the job has ended.
	ImagePullJobComplete = "Complete"
	// ImagePullJobPullsCreated is False if the API server has refused the last pod.
	ImagePullJobPullsCreated = "PullsCreated"
)
