// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podview builds the view of a pod: the pod together with all that its marks depend on, which
// are the markers of its namespace, its node and the report about it. The controllers, the webhook
// and the command line use the same view, so they all compute the same plan and marks.
//
// The package is pure. Package gather reads the arguments of New with a client. The caches keep only
// the fields of Pods, Nodes and ProbeReports that New and the packages below it read: see PodTrimmer
// and TrimReport.
package podview

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// NodeKind is the kind of node that a pod runs on.
type NodeKind int

// The places of a pod.
const (
	// UnknownNode means that the pod is not bound, or that its node is not in the cache.
	UnknownNode NodeKind = iota
	// KubeletNode is a node with a kubelet, whose agent probes the pod.
	KubeletNode
	// VirtualNode is a virtual node, whose provider probes the pod.
	VirtualNode
)

// NodeKindOf returns the kind of the node; nil is no node.
func NodeKindOf(node *metav1.PartialObjectMetadata) NodeKind {
	switch {
	case node == nil:
		return UnknownNode
	case serverless.IsVirtual(node.Labels):
		return VirtualNode
	default:
		return KubeletNode
	}
}

// Options are the settings of the manager that plans depend on.
type Options struct {
	// Defaults are the values of fields that a marker leaves unset.
	Defaults plan.Defaults
	// Serverless is whether providers probe the pods on virtual nodes.
	Serverless bool
}

// Provided reports whether a provider probes the pods of the kind of node.
func (o Options) Provided(kind NodeKind) bool { return o.Serverless && kind == VirtualNode }

// Pod is a pod together with what its marks depend on.
type Pod struct {
	// Object is the pod.
	Object *corev1.Pod
	// NodeKind is the kind of node that the pod runs on.
	NodeKind NodeKind
	// Plan has the probes that the markers require in the pod.
	Plan plan.PodPlan
	// Report has the states that the agent or the provider reported.
	Report mark.PodReport
	// Contests are those for exclusive marks that the pod takes part in: see WithContests.
	Contests []*Contest
}

// New returns the view of the pod. The markers are those of its namespace. The report is that of
// the pod's node; it does not matter if a provider probes the pod.
func New(pod *corev1.Pod, markers []*plan.Marker, kind NodeKind, report mark.NodeReport, options Options) Pod {
	v := Pod{Object: pod, NodeKind: kind, Plan: Plan(pod, markers, kind, options)}
	switch {
	case options.Provided(kind):
		v.Report = mark.Provided(pod, v.Plan.Probes)
	default:
		v.Report = report.OfPod(pod.UID)
	}
	v.Report.Outage = report.Outage
	return v
}

// Plan returns the probes that the markers require in the pod, which the agent of its node
// or the provider of its virtual node runs.
func Plan(pod *corev1.Pod, markers []*plan.Marker, kind NodeKind, options Options) plan.PodPlan {
	switch {
	case !options.Provided(kind):
		return plan.Pod(pod, markers, options.Defaults)
	case !plan.Eligible(pod):
		return plan.PodPlan{}
	default:
		return serverless.Compile(pod, markers, options.Defaults)
	}
}

// Desired returns the complete marks that the pod should have, given those that Seamark
// owns on it now. An ending pod in a contest keeps what it has otherwise.
func (p Pod) Desired(owned mark.Marks) mark.Marks {
	if len(p.Contests) > 0 && plan.Ending(p.Object) {
		return p.restrict(owned, maps.Clone(owned))
	}
	return p.restrict(owned, mark.Desired(p.Plan.Probes, p.Report, owned))
}

// Leftover returns the keys that Seamark must remove explicitly: see mark.Leftover.
func (p Pod) Leftover(owned, desired mark.Marks) []mark.Key {
	if len(p.Contests) == 0 {
		return mark.Leftover(p.Object, p.Plan.Probes, p.Report, owned, desired)
	}
	var leftover []mark.Key
	if !plan.Ending(p.Object) {
		leftover = mark.Leftover(p.Object, p.Plan.Probes, p.Report, owned, desired)
	}
	return p.foreign(leftover, owned, desired)
}

// Transitions returns, for each probe that sets or removes labels of the pod, when the probe got the state that the labels show. The time is
// that of the probe's condition, which is written together with the labels, or else that of the report, or else zero. owned are the
// marks that Seamark owns on the pod.
func (p Pod) Transitions(owned mark.Marks) []guard.Transition {
	claims := p.Claims()
	var transitions []guard.Transition
	for _, probe := range p.Plan.Probes {
		marks := make(mark.Marks)
		for _, key := range mark.Declared(probe.Source) {
			if claims[key] == probe.ID {
				marks[key] = owned[key]
			}
		}
		shown := marks[mark.ConditionType(probe.Source.PodConditionType)].Condition.LastTransitionTime
		if shown.IsZero() {
			state, _ := p.Report.Effective(probe, claims, owned)
			shown = state.LastTransitionTime
		}
		if names := marks.Names(mark.KindLabel); len(names) > 0 {
			transitions = append(transitions, guard.Transition{Labels: names, At: shown.Time})
		}
	}
	return transitions
}

// Edited returns when the object was created, last changed except for its status, or deleted. It is
// zero if this is not known.
func Edited(object metav1.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	if deleted := object.GetDeletionTimestamp(); deleted != nil && deleted.After(last) {
		last = deleted.Time
	}
	return last
}
