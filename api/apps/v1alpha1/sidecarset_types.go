// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

const (
	// SidecarInjectedEnv is the variable that is "true" in injected containers.
	SidecarInjectedEnv = "IS_INJECTED"
	// SidecarSetCustomVersionLabel is the label of a set and of its revisions that contains a version
	// which users choose. It means the same as spec.customVersion.
	SidecarSetCustomVersionLabel = "apps.kruise.io/sidecarset-custom-version"
	// InjectionFailurePolicyKey is the annotation of a set that contains what happens to selected pods
	// that are created while no injector answers: Fail or Ignore. Seamark adds it.
	InjectionFailurePolicyKey = "seamark.dev/injection-failure-policy"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MATCHED",type=integer,JSONPath=`.status.matchedPods`,description="The number of pods that were injected."
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedPods`,description="The number of injected pods that have the latest revision."
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyPods`,description="The number of injected pods that are ready."
// +kubebuilder:printcolumn:name="UNINJECTED",type=integer,JSONPath=`.status.uninjectedPods`,description="The number of selected pods that run without the containers."
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the current generation is in use. It is False for one that is refused, and empty until it is decided."
// +kubebuilder:printcolumn:name="INJECTING",type=string,JSONPath=`.status.conditions[?(@.type=="Injecting")].status`,description="Whether new pods get the containers."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`

// SidecarSet injects containers into pods when they are created, and updates these containers in place.
type SidecarSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the containers, and the pods that get them.
	// +required
	Spec SidecarSetSpec `json:"spec,omitempty"`

	// status is the status of the set, set by Seamark.
	// +optional
	Status SidecarSetStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// SidecarSetList is a list of SidecarSets.
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of SidecarSets.
	Items []SidecarSet `json:"items"`
}

// SidecarSetSpec is the desired state of a SidecarSet.
type SidecarSetSpec struct {
	// selector selects the pods that get the containers. It must contain at least one label in
	// matchLabels or one requirement in matchExpressions, at most 64 labels and 16 requirements of at
	// most 128 values each.
	// +required
	Selector *metav1.LabelSelector `json:"selector"`

	// namespace is the only namespace whose pods get the containers. It must not be kube-system. If
	// namespaceSelector is set too, both must match.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces whose pods get the containers. The pods of kube-system
	// and of Seamark's own namespace never do.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// specificNamespace is how v1beta1 spells namespace and namespaceSelector. Each of the two may be set
	// in one place only.
	// +optional
	SpecificNamespace *SpecificNamespace `json:"specificNamespace,omitempty"`

	// initContainers are the init containers to inject, at most 32, with native sidecars among them:
	// those whose restartPolicy is Always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	InitContainers []SidecarContainer `json:"initContainers,omitempty"`

	// containers are the containers to inject, at most 32. Names are unique among containers and
	// initContainers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Containers []SidecarContainer `json:"containers,omitempty"`

	// volumes are the volumes that the containers mount. A volume that no container mounts is not
	// injected.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// updateStrategy defines how the containers of running pods are updated.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// injectionStrategy defines which revision new pods get.
	// +optional
	// +kubebuilder:default={}
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`

	// imagePullSecrets are the Secrets that are necessary to pull the images of the containers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// revisionHistoryLimit is the maximum number of revisions that are kept, at least 1, with the latest
	// one. Revisions that pods have, and the one that injectionStrategy names, count, and are always kept.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// patchPodMetadata are the annotations that pods get, at most 16 entries. A key may occur once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`

	// customVersion is a version that users choose, and by which injectionStrategy finds the revision. It
	// means the same as the label apps.kruise.io/sidecarset-custom-version.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	CustomVersion string `json:"customVersion,omitempty"`
}

// SpecificNamespace selects namespaces.
type SpecificNamespace struct {
	// namespace is the only namespace whose pods get the containers. It must not be kube-system.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces whose pods get the containers.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// SidecarContainer is a container to inject: all fields of a container of a pod, and those below.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SidecarContainer struct {
	// The fields of a container of a pod. The API server validates them when a pod is created.
	// +kubebuilder:validation:Schemaless
	corev1.Container `json:",inline"`

	// podInjectPolicy is BeforeAppContainer, the default for containers, or AfterAppContainer, the
	// default for init containers: in front of the containers of the pod, or behind them.
	// +optional
	PodInjectPolicy PodInjectPolicyType `json:"podInjectPolicy,omitempty"`

	// upgradeStrategy defines how the container of a running pod is updated.
	// +optional
	// +kubebuilder:default={}
	UpgradeStrategy SidecarContainerUpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// shareVolumePolicy defines whether the container mounts the volumes that the containers of the pod
	// mount.
	// +optional
	// +kubebuilder:default={}
	ShareVolumePolicy ShareVolumePolicy `json:"shareVolumePolicy,omitempty"`

	// shareVolumeDevicePolicy defines whether the container has the block devices of the containers of the
	// pod.
	// +optional
	ShareVolumeDevicePolicy *ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`

	// transferEnv are the variables of containers of the pod that the container gets, at most 64
	// entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	TransferEnv []TransferEnvVar `json:"transferEnv,omitempty"`
}

// PodInjectPolicyType is where a container is injected.
//
// +kubebuilder:validation:Enum=BeforeAppContainer;AfterAppContainer
type PodInjectPolicyType string

const (
	// BeforeAppContainerType is in front of the containers of the pod.
	BeforeAppContainerType PodInjectPolicyType = "BeforeAppContainer"
	// AfterAppContainerType is behind the containers of the pod.
	AfterAppContainerType PodInjectPolicyType = "AfterAppContainer"
)

// ShareVolumePolicy defines whether a container shares volumes or devices of the pod's containers.
type ShareVolumePolicy struct {
	// type is enabled or disabled.
	// +optional
	// +kubebuilder:default=disabled
	Type ShareVolumePolicyType `json:"type,omitempty"`
}

// ShareVolumePolicyType is whether something is shared.
//
// +kubebuilder:validation:Enum=enabled;disabled
type ShareVolumePolicyType string

const (
	// ShareVolumePolicyEnabled shares.
	ShareVolumePolicyEnabled ShareVolumePolicyType = "enabled"
	// ShareVolumePolicyDisabled does not share.
	ShareVolumePolicyDisabled ShareVolumePolicyType = "disabled"
)

// TransferEnvVar are variables of a container of the pod that an injected container gets.
type TransferEnvVar struct {
	// sourceContainerName is the name of the container that has the variables.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SourceContainerName string `json:"sourceContainerName,omitempty"`

	// sourceContainerNameFrom is where the name of the container is, instead of sourceContainerName.
	// +optional
	SourceContainerNameFrom *SourceContainerNameSource `json:"sourceContainerNameFrom,omitempty"`

	// envName is the name of a variable.
	// +optional
	EnvName string `json:"envName,omitempty"`

	// envNames are names of variables, at most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvNames []string `json:"envNames,omitempty"`
}

// SourceContainerNameSource is where the name of a container is.
type SourceContainerNameSource struct {
	// fieldRef is a label or an annotation of the pod: metadata.labels['KEY'] or
	// metadata.annotations['KEY'].
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}

// SidecarContainerUpgradeStrategy defines how the container of a running pod is updated.
type SidecarContainerUpgradeStrategy struct {
	// upgradeType is ColdUpgrade: the container restarts.
	// +optional
	// +kubebuilder:default=ColdUpgrade
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self in ['', 'ColdUpgrade']",message="must be ColdUpgrade: HotUpgrade is not supported, a native sidecar (an init container with restartPolicy Always) keeps the order of start and end"
	UpgradeType SidecarContainerUpgradeType `json:"upgradeType,omitempty"`

	// hotUpgradeEmptyImage is not supported, because HotUpgrade is not.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == ''",message="must not be set: HotUpgrade is not supported, use ColdUpgrade"
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
}

// SidecarContainerUpgradeType is how the container of a running pod is updated.
type SidecarContainerUpgradeType string

// SidecarContainerColdUpgrade restarts the container.
const SidecarContainerColdUpgrade SidecarContainerUpgradeType = "ColdUpgrade"

// SidecarSetPatchPodMetadata are annotations that pods get.
type SidecarSetPatchPodMetadata struct {
	// annotations are the annotations, at most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// patchPolicy is what happens if the pod has the annotation. Retain keeps it.
	// Overwrite replaces it. MergePatchJson merges both values, which must be JSON objects. Retain applies
	// only when the pod is created, the others also when it is updated.
	// +optional
	// +kubebuilder:default=Retain
	PatchPolicy SidecarSetPatchPolicyType `json:"patchPolicy,omitempty"`
}

// SidecarSetPatchPolicyType is what happens to an annotation that the pod has.
//
// +kubebuilder:validation:Enum=Retain;Overwrite;MergePatchJson
type SidecarSetPatchPolicyType string

const (
	// SidecarSetRetainPatchPolicy keeps the annotation of the pod.
	SidecarSetRetainPatchPolicy SidecarSetPatchPolicyType = "Retain"
	// SidecarSetOverwritePatchPolicy replaces the annotation of the pod.
	SidecarSetOverwritePatchPolicy SidecarSetPatchPolicyType = "Overwrite"
	// SidecarSetMergePatchJSONPatchPolicy merges the JSON objects, as RFC 7386 defines it.
	SidecarSetMergePatchJSONPatchPolicy SidecarSetPatchPolicyType = "MergePatchJson"
)

// SidecarSetInjectionStrategy defines which revision new pods get.
type SidecarSetInjectionStrategy struct {
	// paused stops the injection. Updates continue.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// revision is the revision that new pods get. By default, they get the latest one.
	// +optional
	Revision *SidecarSetInjectRevision `json:"revision,omitempty"`
}

// SidecarSetInjectRevision names a revision of the set, with at least one of customVersion and
// revisionName.
type SidecarSetInjectRevision struct {
	// customVersion is the custom version of the revision: the newest one that has it.
	// +optional
	CustomVersion *string `json:"customVersion,omitempty"`

	// revisionName is the name of the revision. It takes precedence over customVersion.
	// +optional
	RevisionName *string `json:"revisionName,omitempty"`

	// policy is which pods get the revision: all with Always, and with Partial those that
	// updateStrategy.selector does not match, and of the others the share updateStrategy.partition.
	// +optional
	// +kubebuilder:default=Always
	Policy SidecarSetInjectRevisionPolicy `json:"policy,omitempty"`
}

// SidecarSetInjectRevisionPolicy is which new pods get the named revision.
//
// +kubebuilder:validation:Enum=Always;Partial
type SidecarSetInjectRevisionPolicy string

const (
	// AlwaysSidecarSetInjectRevisionPolicy means all new pods.
	AlwaysSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Always"
	// PartialSidecarSetInjectRevisionPolicy means the pods that updateStrategy would not update.
	PartialSidecarSetInjectRevisionPolicy SidecarSetInjectRevisionPolicy = "Partial"
)

// SidecarSetUpdateStrategy defines how the containers of running pods are updated.
type SidecarSetUpdateStrategy struct {
	// type is RollingUpdate or NotUpdate, which updates no running pod.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type SidecarSetUpdateStrategyType `json:"type,omitempty"`

	// paused stops the update.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// selector selects the pods that are updated. It must not be set together with a partition other
	// than 0.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// partition is the number of pods that keep the old revision: a number, at least 0, or a percentage
	// of the matched pods, 0% to 100%, rounded up. A percentage other than 100% keeps not all pods.
	// +optional
	// +kubebuilder:default=0
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is the maximum number of pods that the update may make unavailable: a number, at
	// least 1, or a percentage of the matched pods, 1% to 100%, rounded up.
	// +optional
	// +kubebuilder:default=1
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// priorityStrategy orders the pods of an update by their labels.
	// +optional
	PriorityStrategy *pub.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads the pods with the same label over the update. The value * stands for each of
	// the 64 most common values of the label. It applies after priorityStrategy. At most 16 labels.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=value
	// +kubebuilder:validation:MaxItems=16
	ScatterStrategy UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
}

// SidecarSetUpdateStrategyType is whether running pods are updated.
//
// +kubebuilder:validation:Enum=RollingUpdate;NotUpdate
type SidecarSetUpdateStrategyType string

const (
	// RollingUpdateSidecarSetStrategyType updates running pods.
	RollingUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "RollingUpdate"
	// NotUpdateSidecarSetStrategyType does not.
	NotUpdateSidecarSetStrategyType SidecarSetUpdateStrategyType = "NotUpdate"
)
