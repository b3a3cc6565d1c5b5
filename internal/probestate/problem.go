// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Problem is why a probe has no state, or why its state may be outdated.
type Problem struct {
	// Reason is one of the reasons of this package, a plan.Reason, a reason of package serverless
	// or a v1alpha1.ProbeErrorReason.
	Reason string `json:"reason"`
	// Message describes the problem, in lower case and without a period at the end.
	Message string `json:"message"`
}

// The reasons why the probes of a pod do not run, besides those that package plan and the agent
// report.
const (
	// PodNotBound means that the pod is not bound to a node.
	PodNotBound = "PodNotBound"
	// PodNotInitialized means that the init containers of the pod have not completed.
	PodNotInitialized = "PodNotInitialized"
	// PodEnding means that the pod is terminating or has ended. It keeps its marks.
	PodEnding = "PodEnding"
	// NoPlan means that the node has no NodePodProbe.
	NoPlan = "NoPlan"
	// NotPlanned means that the NodePodProbe of the node does not have the probe.
	NotPlanned = "NotPlanned"
	// PlanNotRunning means that the agent of the node does not run the current plan yet.
	PlanNotRunning = "PlanNotRunning"
	// StateNotVisible means that only the reports, which could not be read, have the state: the
	// probe declares no condition, and the pod has none of its labels.
	StateNotVisible = "StateNotVisible"
)

// Waiting returns why no probe of the pod runs, or nil.
func Waiting(pod *corev1.Pod) *Problem {
	switch plan.ObstacleOf(pod) {
	case plan.Terminating:
		return &Problem{PodEnding, "pod is terminating"}
	case plan.Ended:
		return &Problem{PodEnding, fmt.Sprintf("pod has ended: its phase is %s", pod.Status.Phase)}
	case plan.NotBound:
		return &Problem{PodNotBound, "pod is not bound to a node"}
	case plan.NotInitialized:
		return &Problem{PodNotInitialized, "pod is not initialized"}
	default:
		return nil
	}
}

// problem returns why the probe has no state, or why its state may be outdated. known is whether it
// has one.
func (r podRows) problem(probe plan.PlannedProbe, known bool) *Problem {
	if r.waiting != nil {
		return r.waiting
	}
	if e, found := r.errors[probe.ID]; found {
		return &Problem{string(e.Reason), describe(e)}
	}
	if !known && r.in.ReportsUnread && probe.Source.PodConditionType == "" {
		return &Problem{StateNotVisible, "only the report has the state, and the report could not be read"}
	}
	if r.in.PlansUnread || r.in.NodesUnread || r.in.Provided(r.pod.Place) {
		return nil
	}
	return r.planProblem(probe)
}

// planProblem returns what is wrong with the plan of the node, or nil.
func (r podRows) planProblem(probe plan.PlannedProbe) *Problem {
	pod := r.pod.Object
	node := pod.Spec.NodeName
	npp := r.in.Plans[node]
	switch {
	case npp == nil:
		return &Problem{NoPlan, fmt.Sprintf("node %s has no NodePodProbe", node)}
	case !isPlanned(npp, pod, probe):
		return &Problem{NotPlanned, fmt.Sprintf("NodePodProbe %s does not have the probe", node)}
	case !npp.Status.ProbeReports && mark.InStatus(npp):
		// Agents of OpenKruise do not report which plan they run.
		return nil
	case npp.Status.ObservedGeneration < npp.Generation:
		return &Problem{PlanNotRunning, fmt.Sprintf("agent of node %s does not run generation %d of its plan yet: the last one is %d",
			node, npp.Generation, npp.Status.ObservedGeneration)}
	default:
		return nil
	}
}

// isPlanned reports whether the stored plan has the probe of the pod.
func isPlanned(npp *v1alpha1.NodePodProbe, pod *corev1.Pod, probe plan.PlannedProbe) bool {
	for i := range npp.Spec.PodProbes {
		if npp.Spec.PodProbes[i].UID != string(pod.UID) {
			continue
		}
		for j := range npp.Spec.PodProbes[i].Probes {
			planned := &npp.Spec.PodProbes[i].Probes[j]
			if planned.Name == probe.Plan.Name && probeid.SamePlan(planned.Plan, probe.Plan.Plan) {
				return true
			}
		}
	}
	return false
}

// errorsOf returns the reported errors of the pod's probes.
func errorsOf(report mark.NodeReport, pod *corev1.Pod) map[probeid.ID]v1alpha1.ContainerProbeError {
	var errs map[probeid.ID]v1alpha1.ContainerProbeError
	add := func(found []v1alpha1.ContainerProbeError) {
		for _, e := range found {
			if id, err := probeid.Parse(e.Name); err == nil {
				if errs == nil {
					errs = map[probeid.ID]v1alpha1.ContainerProbeError{}
				}
				errs[id] = e
			}
		}
	}
	if report.InStatus() {
		for i := range report.Plan.Status.PodProbeStatuses {
			if status := &report.Plan.Status.PodProbeStatuses[i]; status.UID == string(pod.UID) {
				add(status.ProbeErrors)
			}
		}
		return errs
	}
	for _, slice := range report.Slices {
		for i := range slice.Pods {
			if slice.Pods[i].UID == string(pod.UID) {
				add(slice.Pods[i].Errors)
			}
		}
	}
	return errs
}

// describe returns the message for an error that the agent reported.
func describe(e v1alpha1.ContainerProbeError) string {
	text := "probe cannot be run"
	switch e.Reason {
	case v1alpha1.ProbeWaitingForSlot:
		text = "probe waits for an exec slot of the node"
	case v1alpha1.ProbeNotEnded:
		text = "container runtime has not ended an earlier run of the probe"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// CannotRun describes a probe that cannot run in the pod.
func CannotRun(p *plan.Problem) *Problem {
	text := ""
	switch p.Reason {
	case plan.ContainerNotFound:
		text = fmt.Sprintf("container %q not found", p.Container)
	case plan.PortNotFound:
		text = fmt.Sprintf("container %q has no port %q", p.Container, p.Port)
	case plan.TooManyMarkers:
		text = fmt.Sprintf("more than %d markers select the pod, and only the oldest count: %s", plan.MaxMarkers, p.Counted)
	case plan.TimeoutTooLong:
		text = fmt.Sprintf("timeoutSeconds must be at most %d", v1alpha1.MaxTimeoutSeconds)
	case serverless.ConditionTypeMissing:
		text = "podConditionType is required for pods on virtual nodes"
	case serverless.ConditionTypeTaken:
		text = "podConditionType must be unique for pods on virtual nodes, and an earlier probe has the same"
	default:
		text = "exactly one handler is required"
	}
	return &Problem{string(p.Reason), text}
}
