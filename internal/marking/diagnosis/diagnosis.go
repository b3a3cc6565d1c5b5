// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnosis says why a probe of a pod has no state, or why its state may be outdated. Commands,
// the web page and the status of markers show its findings, so they all use the same words.
//
// The package is pure. If an object could not be read, there is no finding about it.
package diagnosis

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// The times until which it is not a problem that something has not happened yet.
const (
	// Settle is how long the manager or an agent may take to handle a change. An agent reports the
	// plan that it runs after ten seconds at the latest, a write may be repeated, and the clocks of
	// the cluster and of the reader may differ by some seconds.
	Settle = 30 * time.Second
	// Startup is how long a container may take to start. It pulls its image and mounts its volumes
	// first.
	Startup = 2 * time.Minute
)

// Reason is the type of a finding. It is a reason of this package, a plan.Reason, a reason of package
// serverless, or a v1alpha1.ProbeErrorReason.
type Reason string

// The reasons besides those of other packages. They are part of the output of commands.
const (
	// PodNotBound means that the pod is not bound to a node.
	PodNotBound Reason = "PodNotBound"
	// PodNotInitialized means that the init containers of the pod have not completed.
	PodNotInitialized Reason = "PodNotInitialized"
	// PodEnding means that the pod is terminating or has ended. It keeps its marks.
	PodEnding Reason = "PodEnding"
	// NoPlan means that the node has no NodePodProbe.
	NoPlan Reason = "NoPlan"
	// NoAddress means that the pod is not planned, because it has a network probe and no address.
	NoAddress Reason = "NoAddress"
	// NotPlanned means that the NodePodProbe of the node does not have the probe.
	NotPlanned Reason = "NotPlanned"
	// PlanOutdated means that the NodePodProbe has an earlier version of the pod's probes.
	PlanOutdated Reason = "PlanOutdated"
	// PlanNotRunning means that the agent of the node does not run the current plan yet.
	PlanNotRunning Reason = "PlanNotRunning"
	// StateNotVisible means that only the reports, which could not be read, have the state: the
	// probe declares no condition, and the pod has none of its labels.
	StateNotVisible Reason = "StateNotVisible"
	// EarlierMarker means that the reported state is that of an earlier marker with the same name.
	EarlierMarker Reason = "EarlierMarker"
	// NotProvided means that the provider of a virtual node has not set the condition of the probe.
	NotProvided Reason = "NotProvided"
	// NotStarted means that the container has never run.
	NotStarted Reason = "ContainerNotStarted"
	// NotStartedUp means that the probe waits for the startup probe of its container.
	NotStartedUp Reason = "ContainerNotStartedUp"
	// NoResult means that the probe has no state, although its container runs or may run.
	NoResult Reason = "NoResult"
)

// Reasons returns the reasons of this package.
func Reasons() []Reason {
	return []Reason{
		PodNotBound, PodNotInitialized, PodEnding, NoPlan, NoAddress, NotPlanned, PlanOutdated, PlanNotRunning,
		StateNotVisible, EarlierMarker, NotProvided, NotStarted, NotStartedUp, NoResult,
	}
}

// Notable reports whether somebody should look at a finding that is not Waiting. It is false if the pod
// starts or ends, or if the user lacks a permission.
func (r Reason) Notable() bool {
	switch r {
	case PodNotBound, PodNotInitialized, PodEnding, NoAddress, StateNotVisible:
		return false
	default:
		return true
	}
}

// Finding is why a probe of a pod has no state, or why its state may be outdated. Which parameters are
// set depends on the reason.
type Finding struct {
	// Reason is the type of the finding.
	Reason Reason
	// Waiting is whether nothing is known to be wrong: the finding passes by itself, or becomes a
	// problem at Until. Until is zero if it never does.
	Waiting bool
	Until   time.Time

	// Container is the container of the probe, and Port the port that it does not have.
	Container, Port string
	// Counted lists the markers that count for the pod: see plan.Excess.
	Counted string
	// Node is the node of the pod.
	Node string
	// Phase is the phase of a pod that has ended. It is empty for one that is terminating.
	Phase corev1.PodPhase
	// Condition is the type of the condition that a provider has not set.
	Condition string
	// Planned is the generation of the plan, and Running the one that the agent runs, or 0.
	Planned, Running int64
	// Due is when the first state of the probe is due.
	Due time.Time
	// Detail is what an agent, a local run or the kubelet reports about it. It is valid UTF-8 of at
	// most mark.MaxErrorBytes.
	Detail string
}

// after returns the finding, which waits until the grace period after the change has passed, and is a problem
// then. Without the time of the change, or without now, it is a problem at once.
func (f Finding) after(changed time.Time, grace time.Duration, now time.Time) *Finding {
	if until := changed.Add(grace); !changed.IsZero() && !now.IsZero() && now.Before(until) {
		f.Waiting, f.Until = true, until
	}
	return &f
}

// OfPod returns why no probe of the pod runs, or nil.
func OfPod(pod *corev1.Pod) *Finding {
	switch plan.ObstacleOf(pod) {
	case plan.Terminating:
		return &Finding{Reason: PodEnding}
	case plan.Ended:
		return &Finding{Reason: PodEnding, Phase: pod.Status.Phase}
	case plan.NotBound:
		return &Finding{Reason: PodNotBound}
	case plan.NotInitialized:
		return &Finding{Reason: PodNotInitialized}
	default:
		return nil
	}
}

// OfProblem returns the finding about a probe that cannot run in a pod.
func OfProblem(p plan.Problem) *Finding {
	return &Finding{Reason: Reason(p.Reason), Container: p.Container, Port: p.Port, Counted: p.Counted}
}

// OfError returns the finding about a probe for which an error is reported. An unknown reason is
// CannotRun.
func OfError(e v1alpha1.ContainerProbeError) *Finding {
	e = mark.Sanitize(e)
	return &Finding{Reason: Reason(e.Reason), Detail: e.Message}
}

// leaseSeconds is the duration of a lease without one.
const leaseSeconds = 15

// Leader returns the holder of a lease of leader-elected programs, which is empty if there is none,
// and when it renewed the lease. It leads until Settle after the end of the lease. Without a leader,
// plans and marks do not change. The lease may be nil.
func Leader(lease *coordinationv1.Lease, now time.Time) (holder string, renewed time.Time, leads bool) {
	if lease == nil {
		return "", time.Time{}, false
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	holder = ptr.Deref(lease.Spec.HolderIdentity, "")
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, leaseSeconds)) * time.Second
	return holder, renewed, holder != "" && now.Sub(renewed) <= duration+Settle
}
