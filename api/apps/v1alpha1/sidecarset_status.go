// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SidecarSetStatus is the observed state of a SidecarSet.
type SidecarSetStatus struct {
	// observedGeneration is the generation of the spec that the status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedPods is the number of selected pods that were injected.
	// +optional
	// +kubebuilder:default=0
	MatchedPods int32 `json:"matchedPods"`

	// updatedPods is the number of matched pods that have the latest revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedPods int32 `json:"updatedPods"`

	// readyPods is the number of matched pods that are ready.
	// +optional
	// +kubebuilder:default=0
	ReadyPods int32 `json:"readyPods"`

	// updatedReadyPods is the number of matched pods that have the latest revision and are ready.
	// +optional
	UpdatedReadyPods int32 `json:"updatedReadyPods,omitempty"`

	// latestRevision is the name of the latest accepted revision.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`

	// collisionCount is the number of collisions of revision names. It is part of the hash in the name
	// of new revisions.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// uninjectedPods is the number of selected pods that run without the containers: those created before
	// the set, or while no injector answered. Seamark adds this field.
	// +optional
	// +kubebuilder:default=0
	UninjectedPods int32 `json:"uninjectedPods"`

	// notUpgradablePods is the number of matched pods that differ from the latest revision in more than
	// images and resources. Seamark adds this field.
	// +optional
	NotUpgradablePods int32 `json:"notUpgradablePods,omitempty"`

	// inForce is the last accepted generation: what injectors use while a later one is not accepted.
	// Seamark adds this field.
	// +optional
	InForce *SidecarSetInForce `json:"inForce,omitempty"`

	// conditions are Accepted, Injecting and Upgradable. Seamark adds this field.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SidecarSetInForce is what an accepted generation of a set injects, and which pods it selects.
type SidecarSetInForce struct {
	// generation is the accepted generation.
	Generation int64 `json:"generation"`

	// revision is the revision of the generation.
	// +optional
	Revision string `json:"revision,omitempty"`

	// refused is why the pods are refused: the set was served by OpenKruise, and uses what Seamark does not
	// serve.
	// +optional
	Refused string `json:"refused,omitempty"`

	// namedRevision is the revision that injectionStrategy names.
	// +optional
	NamedRevision string `json:"namedRevision,omitempty"`

	// policy is which pods get the named revision.
	// +optional
	Policy SidecarSetInjectRevisionPolicy `json:"policy,omitempty"`

	// inherits is whether a container gets mounts, devices or variables of the containers of the pod.
	// +optional
	Inherits bool `json:"inherits,omitempty"`

	// selector selects the pods.
	// +required
	Selector *metav1.LabelSelector `json:"selector"`

	// namespace is the only namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Targets returns a specification with only the selectors.
func (f *SidecarSetInForce) Targets() *SidecarSetSpec {
	return &SidecarSetSpec{Selector: f.Selector, Namespace: f.Namespace, NamespaceSelector: f.NamespaceSelector}
}

// The types of the conditions of a SidecarSet.
const (
	// SidecarSetAccepted is False while this generation is not in use. The last accepted revision stays in
	// force.
	SidecarSetAccepted = "Accepted"
	// SidecarSetInjecting is False while new pods are not injected.
	SidecarSetInjecting = "Injecting"
	// SidecarSetUpgradable is False while pods differ from the latest revision in more than images and
	// resources.
	SidecarSetUpgradable = "Upgradable"
)

// PodSidecarSetUpgradable is the condition of a pod that is False while it differs from the latest revision of one of its
// sets in more than images and resources. The message contains, as JSON, what each set says, by its name.
const PodSidecarSetUpgradable corev1.PodConditionType = "SidecarSetUpgradable"

// The annotations of injected pods.
const (
	// SidecarSetHashKey is the pod annotation that contains, as JSON, which revision of each set the pod
	// has, by the name of the set: SidecarSetUpgradeSpec.
	SidecarSetHashKey = "kruise.io/sidecarset-hash"
	// SidecarSetHashWithoutImageKey is like SidecarSetHashKey, with hashes that ignore images.
	SidecarSetHashWithoutImageKey = "kruise.io/sidecarset-hash-without-image"
	// SidecarSetListKey is the pod annotation that contains the names of the injected sets, sorted and
	// separated by commas.
	SidecarSetListKey = "kruise.io/sidecarset-injected-list"
	// SidecarSetInPlaceStateKey is the pod annotation that contains, as JSON, the state of the last update in
	// place by the name of the set: pub.InPlaceUpdateState.
	SidecarSetInPlaceStateKey = "kruise.io/sidecarset-inplace-update-state"
)

// SidecarSetUpgradeSpec is which revision of a set a pod has, in the annotations SidecarSetHashKey and
// SidecarSetHashWithoutImageKey.
//
// +kubebuilder:object:generate=true
type SidecarSetUpgradeSpec struct {
	// UpdateTimestamp is the time of the injection, or of the last update.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// SidecarSetHash is the hash of the containers.
	SidecarSetHash string `json:"hash"`
	// SidecarSetName is the name of the set.
	SidecarSetName string `json:"sidecarSetName"`
	// SidecarList are the names of the containers, sorted, without init containers that are not native
	// sidecars.
	SidecarList []string `json:"sidecarList"`
	// SidecarSetControllerRevision is the name of the ControllerRevision.
	SidecarSetControllerRevision string `json:"controllerRevision,omitempty"`
}
