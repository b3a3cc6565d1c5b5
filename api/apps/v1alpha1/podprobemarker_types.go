// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ppm
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matchedPods`,description="Pods that are probed."
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.succeeded`,description="States of probes in these pods that are Succeeded."
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`,description="States that are Failed."
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.unknown`,description="States that are Unknown or stale, or whose exclusive marks another pod has."
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.conditions[?(@.status=="False")].reason`,description="Reason of the first condition that is False."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PodProbeMarker runs custom probes in the containers of the selected pods and marks each
// pod with the results: a condition, labels and annotations.
type PodProbeMarker struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which pods are probed, with which probes, and how they are marked.
	// +required
	Spec PodProbeMarkerSpec `json:"spec,omitempty"`

	// status is the status of the marker, set by Seamark.
	// +optional
	Status PodProbeMarkerStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// PodProbeMarkerList is a list of PodProbeMarkers.
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of PodProbeMarkers.
	Items []PodProbeMarker `json:"items"`
}

// PodProbeMarkerSpec is the desired behavior of a PodProbeMarker.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || !self.selector.matchLabels.exists(key, self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labels) && key in m.labels)))",fieldPath=".probes",message="markerPolicy labels must not have a key of spec.selector.matchLabels",messageExpression="'markerPolicy labels must not have the key \"' + self.selector.matchLabels.filter(key, self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labels) && key in m.labels)))[0] + '\" of spec.selector.matchLabels: the marker would change which pods it selects'"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || !self.selector.matchExpressions.exists(e, self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labels) && e.key in m.labels)))",fieldPath=".probes",message="markerPolicy labels must not have a key of spec.selector.matchExpressions",messageExpression="'markerPolicy labels must not have the key \"' + self.selector.matchExpressions.map(e, e.key).filter(key, self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labels) && key in m.labels)))[0] + '\" of spec.selector.matchExpressions: the marker would change which pods it selects'"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || !self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labelsFrom) && m.labelsFrom.exists(f, f.key in self.selector.matchLabels)))",fieldPath=".probes",message="markerPolicy labelsFrom must not have a key of spec.selector.matchLabels: the marker would change which pods it selects"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || !self.probes.exists(p, has(p.markerPolicy) && p.markerPolicy.exists(m, has(m.labelsFrom) && m.labelsFrom.exists(f, self.selector.matchExpressions.exists(e, e.key == f.key))))",fieldPath=".probes",message="markerPolicy labelsFrom must not have a key of spec.selector.matchExpressions: the marker would change which pods it selects"
type PodProbeMarkerSpec struct {
	// selector selects the pods to probe, in the marker's namespace. It must contain at
	// least one label in matchLabels or one requirement in matchExpressions, and at most 64
	// labels and 16 requirements of at most 128 values each. It is immutable: to change it,
	// delete the marker and create a new one.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="must contain at least one label in matchLabels or one requirement in matchExpressions"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable: delete the marker and create a new one"
	Selector *metav1.LabelSelector `json:"selector"`

	// probes are the probes that run in each pod, 1 to 32. If two of them set the same key,
	// the first takes effect. Names and podConditionTypes must be unique. No markerPolicy may
	// set a label whose key is in the selector, because the marker would change which pods it
	// selects. The annotation values of all probes together have at most 131072 characters.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.podConditionType) || p.podConditionType == '' || self.exists_one(q, has(q.podConditionType) && q.podConditionType == p.podConditionType))",message="podConditionType must be unique: a value may occur only once in a marker"
	// +kubebuilder:validation:XValidation:rule="self.map(p, has(p.markerPolicy) ? p.markerPolicy.map(m, has(m.annotations) ? m.annotations.map(key, size(m.annotations[key])).sum() : 0).sum() : 0).sum() <= 131072",message="annotation values of all probes must have at most 131072 characters together"
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe and the marks that it sets.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podConditionType) && size(self.podConditionType) > 0) || (has(self.markerPolicy) && size(self.markerPolicy) > 0)",message="must set podConditionType, markerPolicy or both"
type PodContainerProbe struct {
	// name of the probe, unique within the marker: 1 to 253 letters, digits, '-', '_', '.'
	// and '/', starting and ending with a letter or digit. It must not be the type of a pod
	// condition that Kubernetes sets, such as Ready.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$')",message="must consist of letters, digits, '-', '_', '.' and '/', and start and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="must not be a condition type that Kubernetes sets: use another name, such as game.io/idle"
	Name string `json:"name"`

	// containerName is the name of the container to probe, at most 63 characters. It can be
	// a regular container or a restartable init container, not another init container or an
	// ephemeral container. A pod without that container is not probed.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be a container name: lowercase letters, digits and '-', starting and ending with a letter or digit"
	ContainerName string `json:"containerName"`

	// probe defines what to run, when to run it, and how many consecutive results change the
	// state. It has the fields of a core/v1 Probe, with exactly one of exec, httpGet,
	// tcpSocket and grpc. Network probes connect to the pod's IP address, so host cannot be
	// set. A field that is unset or zero takes its default: initialDelaySeconds 0,
	// periodSeconds 10, timeoutSeconds 1, successThreshold 1, failureThreshold 3. Unlike in a
	// liveness probe, timeoutSeconds is at most 300, successThreshold may be greater than 1, and
	// terminationGracePeriodSeconds must not be set. A port is a number from 1 to 65535 or the
	// name of a port of the container. At most: 128 items with 16384 characters in total in
	// exec.command, 16 headers with 16384 characters in total in httpGet.httpHeaders, 4096
	// characters in httpGet.path, 512 in grpc.service.
	// +required
	// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].exists_one(set, set)",message="must have exactly one of exec, httpGet, tcpSocket and grpc"
	// +kubebuilder:validation:XValidation:rule="!has(self.terminationGracePeriodSeconds)",message="must not be set: a failed probe marks the pod and does not terminate it",fieldPath=".terminationGracePeriodSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.exec) || !has(self.periodMilliseconds) || self.periodMilliseconds >= 500",message="must be 500 or more for exec: each run starts a process in the container",fieldPath=".periodMilliseconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.exec) || !has(self.timeoutMilliseconds) || self.timeoutMilliseconds >= 500",message="must be 500 or more for exec: each run starts a process in the container",fieldPath=".timeoutMilliseconds"
	Probe ContainerProbeSpec `json:"probe"`

	// markerPolicy defines the labels and annotations that the pod has in each state of the
	// probe, with at most one entry per state. In a state without an entry, the keys of all
	// entries are removed. At least one of markerPolicy and podConditionType is required.
	// +optional
	// +listType=map
	// +listMapKey=state
	// +kubebuilder:validation:MaxItems=3
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`

	// podConditionType is the type of the pod condition that shows the state: True for
	// Succeeded, False for Failed, Unknown for Unknown. It must be a qualified name, such as
	// game.io/idle, and not a type that Kubernetes sets, such as Ready. If it is empty, no
	// condition is set.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == '' || !format.qualifiedName().validate(self).hasValue()",message="must be a qualified name: an optional DNS subdomain and '/', then 1 to 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit, such as game.io/idle"
	// +kubebuilder:validation:XValidation:rule="!(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="must not be a condition type that Kubernetes sets: use another type, such as game.io/idle"
	PodConditionType string `json:"podConditionType,omitempty"`

	// staleAfterSeconds is the time after which the state counts as Unknown, with the reason Stale,
	// while it is not current: the Node of the pod is not ready or is gone, or no agent on it is
	// ready to report. The marks follow, and come back when the states are current again. At
	// least 10. If it is unset, the state never becomes stale. Added by Seamark.
	// +optional
	// +kubebuilder:validation:Minimum=10
	StaleAfterSeconds *int32 `json:"staleAfterSeconds,omitempty"`

	// startupPolicy is when the probe starts to run after a start of the container: Ignore, at once,
	// or WaitForStarted, when the startup probe of the container has succeeded. Until then, the probe
	// has no result. The default is Ignore. Added by Seamark.
	// +optional
	// +kubebuilder:validation:Enum=Ignore;WaitForStarted
	StartupPolicy StartupPolicy `json:"startupPolicy,omitempty"`
}

// StartupPolicy is when a probe starts to run after a start of its container. Added by Seamark.
type StartupPolicy string

// The startup policies of a probe.
const (
	// StartupIgnore means that the probe does not wait for the startup probe of the container.
	StartupIgnore StartupPolicy = "Ignore"
	// StartupWait means that the probe waits until the startup probe of the container has succeeded.
	// A container without a startup probe has started when it runs.
	StartupWait StartupPolicy = "WaitForStarted"
)

// ContainerProbeSpec is a probe with the fields of a core/v1 Probe. A field that is unset or
// zero takes its default: initialDelaySeconds 0, periodSeconds 10, timeoutSeconds 1,
// successThreshold 1, failureThreshold 3. terminationGracePeriodSeconds has no effect,
// and markers must not set it.
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`

	// periodMilliseconds is the time between the starts of two runs, in milliseconds. It overrides
	// periodSeconds: at least 100, or 500 for exec. Added by Seamark.
	// +optional
	// +kubebuilder:validation:Minimum=100
	PeriodMilliseconds int32 `json:"periodMilliseconds,omitempty"`

	// timeoutMilliseconds is the time limit of one run, in milliseconds. It overrides
	// timeoutSeconds: at least 100, or 500 for exec, and at most 300000. Added by Seamark.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300000
	TimeoutMilliseconds int32 `json:"timeoutMilliseconds,omitempty"`
}

// ProbeMarkerPolicy defines the labels and annotations of a pod in one state of a probe.
//
// +kubebuilder:validation:XValidation:rule="(has(self.labelsFrom) ? size(self.labelsFrom) : 0) + (has(self.annotationsFrom) ? size(self.annotationsFrom) : 0) <= 16",message="labelsFrom and annotationsFrom must have at most 16 keys together"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !has(self.labelsFrom) || !self.labelsFrom.exists(f, f.key in self.labels)",fieldPath=".labelsFrom",message="must not have a key of labels"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || !has(self.annotationsFrom) || !self.annotationsFrom.exists(f, f.key in self.annotations)",fieldPath=".annotationsFrom",message="must not have a key of annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || self.state != 'Unknown'",fieldPath=".exclusive",message="must not be set for the state Unknown: pods that lose the marks are Unknown"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || !has(self.labelsFrom) && !has(self.annotationsFrom)",fieldPath=".exclusive",message="must not be set together with labelsFrom or annotationsFrom: put these in another probe"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || has(self.labels) && size(self.labels) > 0 || has(self.annotations) && size(self.annotations) > 0",fieldPath=".exclusive",message="requires labels or annotations"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || !has(self.exclusive.perLabel) || !has(self.labels) || !(self.exclusive.perLabel in self.labels)",fieldPath=".exclusive.perLabel",message="must not be a key of labels"
type ProbeMarkerPolicy struct {
	// state of the probe: Succeeded, Failed or Unknown. Unknown is the state of a container that
	// has restarted and has no result yet; before the first result there is no state. Unknown is
	// added by Seamark.
	// +required
	// +kubebuilder:validation:Enum=Succeeded;Failed;Unknown
	State ProbeState `json:"state"`

	// labels of the pod in this state, at most 32. Keys and values must be valid for
	// Kubernetes labels. No key may occur in the marker's selector.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key).hasValue())",message="keys must be qualified names: an optional DNS subdomain and '/', then 1 to 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pod in this state, at most 32. Keys must be valid for Kubernetes
	// annotations, values at most 16384 characters long.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !format.qualifiedName().validate(key.lowerAscii()).hasValue())",message="keys must be qualified names: an optional DNS subdomain and '/', then 1 to 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
	Annotations map[string]string `json:"annotations,omitempty"`

	// labelsFrom are labels whose values the probe prints. labelsFrom and annotationsFrom have
	// at most 16 keys together. No key may occur in labels or in the marker's selector. Added by
	// Seamark.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=16
	LabelsFrom []ValueSource `json:"labelsFrom,omitempty"`

	// annotationsFrom are annotations whose values the probe prints: at most 256 characters. No
	// key may occur in annotations. Added by Seamark.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=16
	AnnotationsFrom []ValueSource `json:"annotationsFrom,omitempty"`

	// exclusive makes the labels and annotations of this policy exclusive: of the pods that the
	// marker selects, at most one has them. Another pod in this state counts as Unknown, with the
	// reason ClaimLost. It is for the states Succeeded and Failed, and for labels and annotations
	// with fixed values. Added by Seamark.
	// +optional
	Exclusive *ExclusivePolicy `json:"exclusive,omitempty"`
}

// ExclusivePolicy decides which of the pods in the state of a policy has its labels and annotations.
// Without termFrom, it is the pod whose state changed last.
type ExclusivePolicy struct {
	// termFrom is the term in the message: the pod with the highest one has the marks. A pod
	// without a term loses against any with one. If terms are equal, the pod whose state changed
	// last has the marks.
	// +optional
	TermFrom *TermSource `json:"termFrom,omitempty"`

	// perLabel is the key of a label: one pod per value of it has the marks, such as one per shard.
	// Pods without the label do not get them. If it is empty, all pods of the marker are one group.
	// A marker can have 500 groups in total.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`
	PerLabel string `json:"perLabel,omitempty"`
}

// TermSource is where the term is in the message of a probe.
type TermSource struct {
	// jsonPath is the path to an integer in a message that is a JSON object or array: fields and
	// indexes, such as .term, 1 to 256 characters. Terms have at most 64 bits.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(\.[A-Za-z0-9_-]+|\[(0|[1-9][0-9]{0,3})\]|\['[A-Za-z0-9_./-]+'\])+$`
	JSONPath string `json:"jsonPath"`
}

// ValueSource is a label or annotation whose value is part of the message of a probe. Without a
// valid value, the pod does not have the key.
type ValueSource struct {
	// key of the label or annotation: a qualified name of at most 317 characters, such as
	// game.io/map.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`

	// jsonPath is the path to the value in a message that is a JSON object or array: fields and
	// indexes, such as .role, .servers[0].name or ['game.io/map'], at most 256 characters. It must
	// lead to a string, a number, true or false. If it is empty, the value is the first line of
	// the message.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^((\.[A-Za-z0-9_-]+|\[(0|[1-9][0-9]{0,3})\]|\['[A-Za-z0-9_./-]+'\])+)?$`
	JSONPath string `json:"jsonPath,omitempty"`

	// allowedValues are the values that take effect, at most 32. A change to or from one of them
	// is reported at once, as a change of the state is. If there are none, any valid value takes
	// effect, and changes are limited like those of messages: three, then one per minute.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowedValues []string `json:"allowedValues,omitempty"`
}
