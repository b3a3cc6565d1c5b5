// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// InPlaceUpdateReady is the readiness gate of pods that can be updated in place. The condition is
	// False from before the update until the new containers run.
	InPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"

	// InPlaceUpdateStateKey is the pod annotation that contains the InPlaceUpdateState of the last
	// update, as JSON.
	InPlaceUpdateStateKey = "apps.kruise.io/inplace-update-state"

	// InPlaceUpdateGraceKey is the pod annotation that is present during the grace period of an
	// update. The value is what is written to the pod after the grace period, as JSON.
	InPlaceUpdateGraceKey = "apps.kruise.io/inplace-update-grace"

	// ResizeRefusedKey is the pod annotation that contains why the API server refused the new
	// resources of an update in place. The pod must be recreated. OpenKruise does not set it.
	ResizeRefusedKey = "seamark.dev/resize-refused"

	// InServiceContainersKey is the annotation of a pod template with the names of containers, separated by commas. An
	// update in place that restarts only these containers does not take the pod out of service: InPlaceUpdateReady stays
	// True, and there is no grace period. OpenKruise does not know it.
	InServiceContainersKey = "seamark.dev/in-service-containers"
)

// InPlaceUpdateState is the state of the last in-place update of a pod, in its annotation
// InPlaceUpdateStateKey. An update that OpenKruise started can be continued from it.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateState struct {
	// Revision is the hash of the revision that the pod is updated to.
	Revision string `json:"revision"`
	// UpdateTimestamp is the time when the update started.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses are the statuses from before the update of the containers that change, by
	// the name of the container.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	// UpdateEnvFromMetadata reports whether environment variables that refer to labels or annotations
	// change. Seamark does not set it.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// UpdateResources reports whether resources of containers change.
	UpdateResources bool `json:"updateResources,omitempty"`
	// UpdateImages reports whether images of containers change.
	UpdateImages bool `json:"updateImages,omitempty"`
	// NextContainerImages are the images of containers that are updated in a later batch, by the name
	// of the container.
	NextContainerImages map[string]string `json:"nextContainerImages,omitempty"`
	// NextContainerRefMetadata are labels and annotations that change with a container of a later
	// batch, because its environment refers to them, by the name of the container.
	NextContainerRefMetadata map[string]metav1.ObjectMeta `json:"nextContainerRefMetadata,omitempty"`
	// NextContainerResources are the resources of containers that are updated in a later batch, by the
	// name of the container. Seamark also keeps those of a written batch until the update is done:
	// they are in the specification only after another write.
	NextContainerResources map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	// PreCheckBeforeNext is the condition for the next batch.
	PreCheckBeforeNext *InPlaceUpdatePreCheckBeforeNext `json:"preCheckBeforeNext,omitempty"`
	// ContainerBatchesRecord are the batches that have been written.
	ContainerBatchesRecord []InPlaceUpdateContainerBatch `json:"containerBatchesRecord,omitempty"`
}

// InPlaceUpdateContainerStatus is what the status of a container was before the update.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerStatus struct {
	// ImageID is the image ID of the container status. The update of the container is done when it
	// differs, or when the new image has the same ID.
	ImageID string `json:"imageID,omitempty"`
	// ContainerID is the ID of the container before the update, empty if none was started. The update
	// is done when a container with another ID has been started. OpenKruise does not set it.
	ContainerID string `json:"containerID,omitempty"`
	// Image is the image of that container in the pod's spec. OpenKruise does not set it.
	Image string `json:"image,omitempty"`
	// Superseded are images of updates that were replaced by newer ones before they were done. A
	// container with one of them may have been started since. OpenKruise does not set it.
	Superseded []string `json:"superseded,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is the condition for the next batch of containers.
//
// +kubebuilder:object:generate=false
type InPlaceUpdatePreCheckBeforeNext struct {
	// ContainersRequiredReady are the names of the containers that must be ready.
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is a batch of containers that was updated together.
//
// +kubebuilder:object:generate=false
type InPlaceUpdateContainerBatch struct {
	// Timestamp is the time when the batch was written.
	Timestamp metav1.Time `json:"timestamp"`
	// Containers are the names of the containers.
	Containers []string `json:"containers"`
}

// InPlaceUpdateStrategy contains the parameters of in-place updates.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time in seconds between marking a pod not ready and changing its
	// containers, 0 to 3600.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`

	// imagePreDownloadParallelism is the parallelism of each ImagePullJob that pulls an image before the update: a
	// number, at least 1, or a percentage of its nodes, 1% to 100%. It takes effect with the feature gate
	// PreDownloadImageForInPlaceUpdate. The annotation apps.kruise.io/image-predownload-parallelism takes precedence.
	// +optional
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`

	// imagePreDownloadTimeoutSeconds is the time limit of each of these pulls. The annotation
	// apps.kruise.io/image-predownload-timeout-seconds takes precedence.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`

	// imagePreDownloadMinUpdatedReadyPods is how many updated pods must be ready before images are pulled: a number, or
	// a percentage of the pods, 0% to 100%, rounded up. The annotation
	// apps.kruise.io/image-predownload-min-updated-ready-pods takes precedence.
	// +optional
	ImagePreDownloadMinUpdatedReadyPods *intstr.IntOrString `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
}
