// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explanation answers why a pod is or is not marked, step by step with the evidence: the pod,
// the markers, its probes, the plan of its node, the agent, what was reported, and the marks.
//
// It is pure and decides nothing itself: the steps show what the packages compute from which the
// manager and the agents are built (plan, serverless, podview, mark, thresholds), with the same inputs. An
// input that could not be read makes a step Unknown, and the others are explained without it.
package explanation

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Leases is the resource of the lease of the managers.
const Leases permission.Resource = "leases.coordination.k8s.io"

// Input is everything that the marks of a pod depend on, as far as it could be read.
type Input struct {
	// Namespace and Name identify the pod.
	Namespace, Name string
	// Pod is the pod with its managedFields, or nil if there is none.
	Pod *corev1.Pod
	// Markers are all markers of the namespace.
	Markers []*v1alpha1.PodProbeMarker
	// Elsewhere are markers of other namespaces, to find one in the wrong namespace. They are
	// optional.
	Elsewhere []*v1alpha1.PodProbeMarker
	// Set is the set of apps.kruise.io that controls the pod, or nil if none does or it could not be read.
	Set metav1.Object
	// SidecarSets are all SidecarSets, ordered by name, as far as they could be read.
	SidecarSets []*v1alpha1.SidecarSet
	// Node is the metadata of the pod's node, or nil if there is none.
	Node *metav1.PartialObjectMetadata
	// Outage is since when the states of the node are not current. It is zero if they are, or if that is
	// not known.
	Outage staleness.Outage
	// Plan is the NodePodProbe of the node, or nil if there is none.
	Plan *v1alpha1.NodePodProbe
	// Slices are the ProbeReports of the node.
	Slices []*seamarkv1alpha1.ProbeReport
	// Agent is the agent's pod on the node, or nil if there is none.
	Agent *corev1.Pod
	// Lease is that of the managers, or nil if there is none.
	Lease *coordinationv1.Lease
	// Events are those of the pod, in any order.
	Events []corev1.Event
	// Unread are the resources that could not be read, of which the pods are those of the agents. Their
	// fields are empty.
	Unread map[permission.Resource]permission.Missing
	// SystemNamespace is the namespace of the managers and agents.
	SystemNamespace string
	// Marker limits the steps to one marker. Empty means all.
	Marker string
	// Now is the current time.
	Now time.Time
	// Program is how users call the program seamark, which is the default.
	Program string
}

// The verdicts of steps. Those of conditions are their severities.
const (
	// OK means that the step is as it should be.
	OK = planning.SeverityOK
	// Problem means that something is wrong. The step has the next command to run.
	Problem = planning.SeverityProblem
	// Waiting means that the step is not complete yet, and nothing is known to be wrong.
	Waiting = planning.SeverityWaiting
	// Info means that the step prevents no mark.
	Info = planning.SeverityInfo
	// Unknown means that the step cannot be checked.
	Unknown planning.Severity = "unknown"
)

// Step is one link of the chain from the pod to its marks.
type Step struct {
	// Title names what is checked, such as "Marker worker".
	Title string `json:"title"`
	// Verdict is the result of the step.
	Verdict planning.Severity `json:"verdict"`
	// Text says in one line what was found.
	Text string `json:"text"`
	// Evidence are the values that it was found from, one per line.
	Evidence []string `json:"evidence,omitempty"`
	// Next is the one command to run next. Each Problem has one.
	Next string `json:"next,omitempty"`
}

// Explanation is the answer for one pod.
type Explanation struct {
	// Namespace and Pod identify the pod.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Marked is whether the pod has exactly the marks that it should have, as far as this can
	// be checked.
	Marked bool `json:"marked"`
	Answer
}

// Answer is what was found.
type Answer struct {
	// Steps are in the order from the pod to its marks, or from the program to the pods of a workload.
	Steps []Step `json:"steps"`
	// Conclusion is the first problem, or what is waited for, or the marks.
	Conclusion string `json:"conclusion"`
	// Next is the command of the first problem.
	Next string `json:"next,omitempty"`
}

// Pod explains the marks of the pod.
func Pod(in Input) Explanation {
	e := &explainer{in: in, invalid: make(map[string]error)}
	e.run()
	return e.conclude()
}

// run adds the steps, and ends with the first one without which the next ones have no meaning.
func (e *explainer) run() {
	if !e.pod() {
		return
	}
	e.controller()
	e.sidecarSets()
	if !e.markers() {
		return
	}
	e.look()
	e.probes()
	if e.waiting != nil {
		e.kept()
		return
	}
	if !e.node() {
		return
	}
	if e.options.Serverless {
		e.provider()
	} else {
		e.manager()
		e.plan()
		e.agent()
	}
	e.report()
	e.marks()
}

// conclude returns the explanation with its last line.
func (e *explainer) conclude() Explanation {
	x := Explanation{Namespace: e.in.Namespace, Pod: e.in.Name}
	if x.Answer = e.answer(); x.Conclusion != "" {
		return x
	}
	x.Conclusion, x.Marked = e.outcome()
	if e.held != "" {
		x.Conclusion += ". " + e.held
	}
	if step := e.first(Unknown); step != nil && !x.Marked {
		x.Next = step.Next
	} else if step := e.first(Info); step != nil {
		x.Next = step.Next
	}
	return x
}

// answer returns the steps, and the first problem or what is waited for as the conclusion.
func (e *explainer) answer() Answer {
	for _, verdict := range []planning.Severity{Problem, Waiting} {
		if step := e.first(verdict); step != nil {
			return Answer{Steps: e.steps, Conclusion: upper(verdict) + ": " + step.Title + ": " + step.Text, Next: step.Next}
		}
	}
	return Answer{Steps: e.steps}
}
