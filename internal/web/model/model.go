// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model has what the web page shows, in the form in which it receives it: pods with the
// states of their probes, markers with counts, and timelines. It builds these from the rows of
// package probestatus, and decides nothing about probes itself.
//
// The package is pure.
package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// Key is the namespace and the name of a pod. Its text is namespace/name.
type Key = types.NamespacedName

// State is the state of a pod: that of its worst probe.
type State string

// The states of a pod, the worst first.
const (
	// Failed, Unknown and Succeeded are states of probes.
	Failed  = State(v1alpha1.ProbeFailed)
	Unknown = State(v1alpha1.ProbeUnknown)
	// None means that a probe has no state yet, or that it is not visible.
	None      State = "None"
	Succeeded       = State(v1alpha1.ProbeSucceeded)
)

// Pod is a pod that has probes.
type Pod struct {
	// Key is namespace/name.
	Key       string    `json:"key"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Node is empty if the pod is not bound.
	Node string `json:"node"`
	// Created is the creation time of the pod.
	Created time.Time `json:"created"`
	// Workload is the controller of the pod, or nil.
	Workload *Workload `json:"workload"`
	// Phase is the phase of the pod.
	Phase corev1.PodPhase `json:"phase"`
	// State is that of the worst probe.
	State State `json:"state"`
	// Problem is whether a probe has a problem that somebody should look at.
	Problem bool `json:"problem"`
	// Guard is the guard that protects the pod from deletion, or nil.
	Guard *probestatus.Guard `json:"guard,omitempty"`
	// Probes have the order of the markers' names and of the probes in a marker. They are not
	// empty.
	Probes []Probe `json:"probes"`
}

// Workload is the controller of a pod.
type Workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Group is its API group.
	Group string `json:"group,omitempty"`
}

// Probe is one probe of a pod.
type Probe struct {
	Marker    string `json:"marker"`
	Probe     string `json:"probe"`
	Container string `json:"container"`
	// State is empty if no state is known.
	State v1alpha1.ProbeState `json:"state"`
	// Since is the time of the last transition, or zero.
	Since time.Time `json:"since,omitzero"`
	// Message is the last message of the probe.
	Message string `json:"message,omitempty"`
	// Source is where the state comes from. It is empty if no state is known.
	Source probestatus.Source `json:"source,omitempty"`
	// Problem is why the probe has no state or why the state may be outdated, or nil.
	Problem *probestatus.Problem `json:"problem,omitempty"`
	// Notable is whether somebody should look at the problem.
	Notable bool `json:"notable,omitempty"`
	// Marks are the marks on the pod that belong to the probe.
	Marks []probestatus.Mark `json:"marks,omitempty"`
	// Refused are the marks that the message has no valid value for, with the reasons.
	Refused []string `json:"refused,omitempty"`
}

// Marker is a marker with the counts of its probes in all pods.
type Marker struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Probes is the number of probes that the marker declares.
	Probes int `json:"probes"`
	// Pods is the number of pods that have a probe of the marker.
	Pods int `json:"pods"`
	// Succeeded, Failed, Unknown and None are numbers of probes in pods, by state.
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Unknown   int `json:"unknown"`
	None      int `json:"none"`
	// Problems is the number of probes in pods that have a problem that somebody should look at.
	Problems int `json:"problems"`
	// Invalid is why the marker has no effect. It is empty if it has.
	Invalid string `json:"invalid"`
}

// Session is who looks at the page, and what the server may show.
type Session struct {
	// User is the name of the user. It may be empty.
	User string `json:"user"`
	// Source is SourceCluster or SourceLocal.
	Source string `json:"source"`
	// Version is the version of the program.
	Version string `json:"version"`
	// Namespace is the one to show first, or empty for all.
	Namespace string `json:"namespace"`
	// Full is whether plans and reports are visible. Otherwise states come from the marks of pods.
	Full bool `json:"full"`
	// ReadOnly is true: the page changes nothing.
	ReadOnly bool `json:"readOnly"`
}

// The values of Session.Source.
const (
	SourceCluster = "cluster"
	SourceLocal   = "local"
)

// Pods is a part of a stream: pods that are new or have changed, and those that are gone.
type Pods[P any] struct {
	// Reset is whether all pods that were sent before are gone.
	Reset bool `json:"reset,omitempty"`
	// Pods are at most MaxChunk.
	Pods []P `json:"pods"`
	// Removed are keys of pods.
	Removed []string `json:"removed,omitempty"`
}

// MaxChunk is the maximum number of pods in one part of a stream.
const MaxChunk = 500

// Markers is a part of a stream: all markers, ordered by namespace and name.
type Markers struct {
	Markers []Marker `json:"markers"`
}

// ObjectProblem is a problem of an object other than a pod or a marker.
type ObjectProblem struct {
	// Kind and Name identify the object, which has no namespace.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Reason and Message are those of a condition.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// End is the last part of a stream.
type End struct {
	// Reason is why the stream ends, for users.
	Reason string `json:"reason"`
	// Final is whether the server has ended, and does not come back.
	Final bool `json:"final,omitempty"`
}

// Timeline is the timeline of the probes of a pod.
type Timeline struct {
	// Start and End are its bounds.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Lines are the probes.
	Lines []history.Line `json:"lines"`
	// Complete is whether the events of the pod could be read.
	Complete bool `json:"complete"`
	// Note is why the timeline is not complete. It is empty if it is complete.
	Note string `json:"note"`
	// Events are the newest ones of the pod, of any component. It is nil in a local run, which has no others than those of Lines.
	Events []Event `json:"events,omitempty"`
}

// Error is the body of every answer that is an error.
type Error struct {
	// Error is the message for users.
	Error string `json:"error"`
}
