// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names that appear on objects and that other programs may rely on. Those that start
// with kruise.io, the event reasons and the event source are OpenKruise's.
const (
	// PodProbeMarkerFinalizer holds a PodProbeMarker back from deletion until its
	// probes are out of every NodePodProbe and its marks are off every pod.
	PodProbeMarkerFinalizer = "kruise.io/node-pod-probe-cleanup"

	// FieldManager is the server-side apply field manager that owns every mark on a
	// pod. What it owns and no longer applies, the API server removes.
	FieldManager = "seamark"

	// PodProbeMarkerAnnotationKey is the annotation of a pod that hands its probes to the
	// provider of a virtual kubelet: a JSON array of PodContainerProbe, without their
	// markerPolicy.
	PodProbeMarkerAnnotationKey = "kruise.io/podprobe"

	// PodProbeMarkerListAnnotationKey is the annotation of a pod that names the markers
	// whose probes PodProbeMarkerAnnotationKey holds, in order and joined by commas.
	PodProbeMarkerListAnnotationKey = "kruise.io/podprobemarker-list"

	// EventReasonProbeSucceeded is the reason of the event on a pod whose probe
	// changed to Succeeded.
	EventReasonProbeSucceeded = "KruiseProbeSucceeded"

	// EventReasonProbeFailed is the reason of the event on a pod whose probe changed
	// to Failed.
	EventReasonProbeFailed = "KruiseProbeFailed"

	// EventSourceComponent is the source component of the events on pods.
	EventSourceComponent = "kruise-daemon-podprobe"

	// NodeTypeLabel is the label of a Node that tells its kind.
	NodeTypeLabel = "type"

	// NodeTypeVirtualKubelet is the value of NodeTypeLabel on a Node that no kubelet
	// runs. Such a Node gets no NodePodProbe.
	NodeTypeVirtualKubelet = "virtual-kubelet"

	// ConditionProbesResolved is the type of a PodProbeMarker's condition that is
	// False while a probe of it can't be run in a matched pod, because the pod has no
	// such container or the container no such port.
	ConditionProbesResolved = "ProbesResolved"

	// ConditionMarksExclusive is the type of a PodProbeMarker's condition that is
	// False while a mark it declares is set by another probe, which comes first in
	// the order of marker names and of probes in a marker.
	ConditionMarksExclusive = "MarksExclusive"
)
