// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"fmt"
	"strings"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// String returns the finding with its detail, in lower case and without a period at the end.
func (f *Finding) String() string {
	if f.Detail == "" {
		return f.clause()
	}
	return f.clause() + ": " + f.Detail
}

// clause returns the only wording of the finding. It does not name the probe, and does not change with
// time, so that it can be compared.
func (f *Finding) clause() string {
	switch {
	case f.Reason == PodEnding && f.Phase != "":
		return fmt.Sprintf("pod has ended: its phase is %s", f.Phase)
	case f.Reason == NoPlan:
		return fmt.Sprintf("node %s has no NodePodProbe", f.Node)
	case f.Reason == PlanNotRunning && f.Running > 0:
		return fmt.Sprintf("the node's agent runs generation %d of the plan, which has generation %d now", f.Running, f.Planned)
	case f.Reason == Reason(plan.ContainerNotFound):
		return fmt.Sprintf("container %q not found", f.Container)
	case f.Reason == Reason(plan.PortNotFound):
		return fmt.Sprintf("container %q has no port %q", f.Container, f.Port)
	case f.Reason == Reason(plan.TooManyMarkers):
		words := fmt.Sprintf("more than %d markers select the pod, and only the oldest count", plan.MaxMarkers)
		return strings.TrimSuffix(words+": "+f.Counted, ": ")
	case f.Reason == Reason(plan.TimeoutTooLong):
		return fmt.Sprintf("timeoutSeconds must be at most %d", v1alpha1.MaxTimeoutSeconds)
	case f.Reason == Reason(plan.PodPlanFull):
		return fmt.Sprintf("the probes of the pod take more than %d KiB, and those that come first leave no room", plan.MaxPodBytes>>10)
	case f.Reason == NotProvided:
		return fmt.Sprintf("the provider has not set the condition %s", f.Condition)
	case f.Reason == NotStarted:
		return fmt.Sprintf("container %q has not started", f.Container)
	case f.Reason == NotStartedUp:
		return fmt.Sprintf("the startup probe of container %q has not succeeded", f.Container)
	case f.Reason == NoResult && f.Waiting:
		return "no threshold has been reached yet"
	}
	if words, found := clauses()[f.Reason]; found {
		return words
	}
	return "cannot be run"
}

// clauses returns the wordings that depend on the reason only.
func clauses() map[Reason]string {
	return map[Reason]string{
		PodEnding:                               "pod is terminating",
		PodNotBound:                             "pod is not bound to a node",
		PodNotInitialized:                       "pod is not initialized",
		NoAddress:                               "pod has a network probe and no IP address, so it is not in the node's plan yet",
		NotPlanned:                              "the node's plan does not have the probe",
		PlanOutdated:                            "the node's plan has an earlier version of the pod's probes",
		PlanNotRunning:                          "no agent has reported that it runs the node's plan",
		Reason(plan.HandlerInvalid):             "exactly one handler is required",
		StateNotVisible:                         "only the report has the state, and the report could not be read",
		EarlierMarker:                           "the reported state is that of an earlier marker with the same name",
		NoResult:                                "no state has been reported, although one is due",
		Reason(v1alpha1.ProbeNotEnded):          "the runtime has not ended an earlier run",
		Reason(v1alpha1.ProbeRateLimited):       "is slowed down",
		Reason(v1alpha1.ProbeWaitingForSlot):    "waits for a slot of the node: too many probes of the pod, the namespace or the node are running",
		Reason(serverless.ConditionTypeMissing): "podConditionType is required for pods on virtual nodes",
		Reason(serverless.ConditionTypeTaken):   "podConditionType must be unique for pods on virtual nodes, and an earlier probe has the same",

		Reason(plan.StartupUnsupported): "startupPolicy WaitForStarted needs a startup probe without a host, without variables in its command, of at most 16 KiB, with a port of the container and a timeout of at most 300 seconds",

		Reason(serverless.StartupPolicyUnsupported): "startupPolicy WaitForStarted is not possible for pods on virtual nodes: providers run probes at once",

		Reason(serverless.MillisecondsUnsupported): "periodMilliseconds and timeoutMilliseconds are not possible for pods on virtual nodes: providers run probes by the second",
	}
}

// ProblemText returns the sentence for a probe that cannot run in a pod, or for all probes of a marker
// if the problem does not name one, without a period, without the pod and the marker, and without what
// the agent reports. The reason may also be a v1alpha1.ProbeErrorReason.
func ProblemText(p plan.Problem) string {
	subject := "All probes"
	if p.ID.Probe != "" {
		subject = fmt.Sprintf("Probe %q", p.ID.Probe)
	}
	return fmt.Sprintf("%s: %s", subject, OfProblem(p).clause())
}

// ConflictText returns the sentence for a key that the pod has from the winner although the loser
// declares it too, without a period.
func ConflictText(c mark.Conflict) string {
	return fmt.Sprintf("Probe %q: %s", c.Loser.Probe, Conflict(c))
}

// Conflict returns the wording of a conflict, without the probe that loses.
func Conflict(c mark.Conflict) string {
	return fmt.Sprintf("%s %q is set by probe %q of marker %q", c.Key.Kind, c.Key.Name, c.Winner.Probe, c.Winner.Marker)
}

// detail limits a text of a container, an agent or the kubelet.
func detail(message string) string { return text.Truncate(message, mark.MaxErrorBytes) }

// TimedOut reports whether the message of a state is that of a probe that exceeded its timeout, with any
// handler.
func TimedOut(message string) bool {
	return strings.HasPrefix(message, "timed out after ") || strings.Contains(message, "deadline exceeded") || strings.Contains(message, "i/o timeout")
}
