// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names that appear on objects and that other programs may rely on. Names that start with
// kruise.io, the event reasons and the event source are defined by OpenKruise.
const (
	// PodProbeMarkerFinalizer delays the deletion of a PodProbeMarker until its probes are
	// removed from all NodePodProbes and its marks from all pods.
	PodProbeMarkerFinalizer = "kruise.io/node-pod-probe-cleanup"

	// FieldManager is the server-side apply field manager that owns the marks of pods. The
	// API server removes what it owns and no longer applies.
	FieldManager = "seamark"

	// AgentFieldManager is the field manager of the agents, which write ProbeReports and the
	// status of NodePodProbes.
	AgentFieldManager = "seamark-agent"

	// RestoreReportsAnnotationKey is the NodePodProbe annotation with which the manager reports
	// to the agent that one of its ProbeReports was deleted or changed by another client. The
	// value identifies the ProbeReport and the change. An agent that sees a new value reads its
	// ProbeReports again and restores them.
	RestoreReportsAnnotationKey = "seamark.dev/restore-reports"

	// ProbePlansAnnotationKey is the NodePodProbe annotation with which the manager states that the
	// plan of the node is in ProbePlans, unless OpenKruise has written podProbes. The value lists the
	// number and the resourceVersion of each ProbePlan, such as "0:812,1:95".
	ProbePlansAnnotationKey = "seamark.dev/probe-plans"

	// PodProbeMarkerAnnotationKey is the pod annotation that passes the probes to the
	// provider of a virtual node: a JSON array of PodContainerProbe, without markerPolicy.
	PodProbeMarkerAnnotationKey = "kruise.io/podprobe"

	// PodProbeMarkerListAnnotationKey is the pod annotation that lists the markers of the
	// probes in PodProbeMarkerAnnotationKey, in order and separated by commas.
	PodProbeMarkerListAnnotationKey = "kruise.io/podprobemarker-list"

	// PublishHTTPBodyAnnotationKey is the PodProbeMarker annotation that, if it is "true",
	// makes the bodies of successful httpGet responses the messages of their probes. By
	// default they are not published, because they may contain confidential data. Setting it
	// requires the right to get pods/proxy.
	PublishHTTPBodyAnnotationKey = "seamark.dev/publish-http-body"

	// MessageUpdatesAnnotationKey is the PodProbeMarker annotation that overrides the field
	// messageUpdates of ManagerConfiguration for the probes of the marker. The value is Limited or
	// Immediate; any other value counts as not set.
	MessageUpdatesAnnotationKey = "seamark.dev/message-updates"

	// DeleteProtectionKey is the label that protects objects from deletion, and DeleteProtectionAlways and
	// DeleteProtectionCascading are its values.
	DeleteProtectionKey       = "policy.kruise.io/delete-protection"
	DeleteProtectionAlways    = "Always"
	DeleteProtectionCascading = "Cascading"

	// GuardKey is the label that makes a PodDisruptionBudget a guard if its value is "true": the policy seamark-guards refuses the
	// deletion of the pods that it selects. With GuardUpdateKey in addition, the policy seamark-guard-updates also refuses changes
	// that restart their containers. GuardExemptKey is the label that releases a pod from both, whatever its value. The manager sets it
	// to GuardExemptMaxDuration, and removes this value, when a pod has been guarded for the time in the annotation
	// GuardMaxDurationKey of its guards.
	GuardKey               = "seamark.dev/guard"
	GuardUpdateKey         = "seamark.dev/guard-update"
	GuardExemptKey         = "seamark.dev/guard-exempt"
	GuardExemptMaxDuration = "max-duration"
	GuardMaxDurationKey    = "seamark.dev/guard-max-duration"

	// MaxTimeoutSeconds is the longest timeout of a probe. A command may use a slot of its node
	// for that long.
	MaxTimeoutSeconds = 300
	// MinMilliseconds is the least periodMilliseconds and timeoutMilliseconds of a network probe.
	MinMilliseconds = 100
	// MinExecMilliseconds is the least of an exec probe: each run starts a process in the container,
	// which takes 20 to 100 milliseconds of CPU time.
	MinExecMilliseconds = 500

	// EventReasonProbeSucceeded is the reason of the pod event for a transition to
	// Succeeded.
	EventReasonProbeSucceeded = "KruiseProbeSucceeded"

	// EventReasonProbeFailed is the reason of the pod event for a transition to Failed.
	EventReasonProbeFailed = "KruiseProbeFailed"

	// EventReasonProbeError is the reason of the pod event for a probe that cannot be run.
	EventReasonProbeError = "KruiseProbeError"

	// EventReasonMarksLimited is the reason of the pod event that reports that the writes of
	// marks to the pod are limited, because they change too often.
	EventReasonMarksLimited = "MarksLimited"

	// EventReasonGuardReleased is the reason of the pod event for the label GuardExemptMaxDuration.
	EventReasonGuardReleased = "GuardReleased"

	// EventReasonGuardInvalid is the reason of the event of a PodDisruptionBudget with an invalid annotation
	// GuardMaxDurationKey, which has no effect.
	EventReasonGuardInvalid = "GuardInvalid"

	// ReasonStale is the reason of a pod condition whose state is stale: it counts as Unknown,
	// because the node of the pod or its agent has not been ready for staleAfterSeconds.
	ReasonStale = "Stale"

	// ReasonClaimLost is the reason of a pod condition whose state counts as Unknown because
	// another pod has the exclusive marks of the state.
	ReasonClaimLost = "ClaimLost"

	// ExclusiveTicketPrefix is the prefix of the label that a pod has before and as long as it has the
	// marks of an exclusive policy. The rest of the key identifies the policy, and the value is the group.
	// Do not edit it: it prevents that two pods of a group have the marks.
	ExclusiveTicketPrefix = "exclusive.seamark.dev/"

	// EventSourceComponent is the source component of pod events.
	EventSourceComponent = "kruise-daemon-podprobe"

	// NodeTypeLabel is the Node label that contains the type of the node.
	NodeTypeLabel = "type"

	// NodeTypeVirtualKubelet is the value of NodeTypeLabel on virtual nodes whose providers
	// may run probes. They have no NodePodProbe.
	NodeTypeVirtualKubelet = "virtual-kubelet"

	// ConditionProbesResolved is the type of the PodProbeMarker condition that is False while
	// a probe cannot run in a matched pod: because the pod does not have the container, the
	// container does not have the port, 64 older markers select the pod, or the agent
	// reports an error. It is also False while an annotation of the marker has an invalid value.
	ConditionProbesResolved = "ProbesResolved"

	// ConditionMarksExclusive is the type of the PodProbeMarker condition that is False while
	// another probe sets a mark that the marker declares. The first probe in the order of
	// marker names, and of the probes in a marker, takes effect.
	ConditionMarksExclusive = "MarksExclusive"

	// ConditionMarksApplied is the type of the PodProbeMarker condition that is False while a pod
	// does not have all marks of the marker: the API server refuses them, or the writes to the pod
	// are limited.
	ConditionMarksApplied = "MarksApplied"

	// ConditionPodsMatched is the type of the PodProbeMarker condition that is False while matchedPods is 0. Otherwise, the
	// marker does not have it.
	ConditionPodsMatched = "PodsMatched"

	// ConditionDecodable is the type of the condition of a workload, SidecarSet or job that is False while the object
	// has a value of another type than the field, such as a number in an annotation. Its pods stay as they are.
	// An object that can be decoded does not have it.
	ConditionDecodable = "Decodable"

	// ConditionReady is the type of the condition of a workload that is True while all pods that its update reaches are
	// updated, and all pods are available. Clients such as `kubectl wait`, Helm and Flux read it, and the following two, by
	// the conventions of kstatus.
	ConditionReady = "Ready"
	// ConditionReconciling is the type of the condition of a workload that is True while pods are missing, not updated or not
	// available, also while the update is paused. Otherwise, the workload does not have it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is the type of the condition of a workload that is True when this has taken progressDeadlineSeconds.
	// Otherwise, the workload does not have it.
	ConditionStalled = "Stalled"

	// ConditionMarksRemoved is the type of the PodProbeMarker condition that is False while a
	// marker that is being deleted waits for pods or plans and makes no progress. A marker that is
	// not being deleted does not have it.
	ConditionMarksRemoved = "MarksRemoved"
)
