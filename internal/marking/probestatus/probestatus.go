// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probestatus lists the probes of pods with their states: one Row per pod, container,
// marker and probe. Commands and the web page show these rows. The package decides nothing itself:
// packages plan, podview and mark compute which probes a pod has and which reported state applies to
// a probe, as in the controllers, and package diagnosis why a probe has no state.
//
// The package is pure. It works with incomplete input, because an ordinary user may read only
// pods and markers: a state that is not reported, or whose report cannot be read, is derived from
// the marks on the pod.
package probestatus

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// Input are the objects that rows depend on.
type Input struct {
	// Options are the settings of the manager. Defaults affect only what Plan shows.
	podview.Options
	// Pods are the pods to list, in any order and from any namespaces.
	Pods []*corev1.Pod
	// Markers are all markers of the namespaces of the pods.
	Markers []*v1alpha1.PodProbeMarker
	// Budgets are the PodDisruptionBudgets of these namespaces that are guards. Others have no effect.
	Budgets []*policyv1.PodDisruptionBudget
	// Nodes are the nodes of the pods by name. A missing node counts as one with a kubelet.
	Nodes map[string]*metav1.PartialObjectMetadata
	// Plans are the NodePodProbes of the nodes by name.
	Plans map[string]*v1alpha1.NodePodProbe
	// Reports are the ProbeReports of the nodes by name of the node.
	Reports map[string][]*seamarkv1alpha1.ProbeReport
	// NodesUnread, PlansUnread and ReportsUnread are whether these could not be read, so that it
	// is no problem if one is missing.
	NodesUnread, PlansUnread, ReportsUnread bool
	// Statuses is whether the pods have the statuses of their containers.
	Statuses bool
	// Now is the current time: see diagnosis.Input.
	Now time.Time

	// guards are those of the budgets by namespace.
	guards map[string]guard.Guards
}

// NewInput returns an input without objects.
func NewInput(options podview.Options) Input {
	return Input{
		Options: options, Nodes: map[string]*metav1.PartialObjectMetadata{}, Plans: map[string]*v1alpha1.NodePodProbe{},
		Reports: map[string][]*seamarkv1alpha1.ProbeReport{},
	}
}

// Row is one probe of one pod. The JSON form is printed by commands.
type Row struct {
	// Namespace, Pod and UID identify the pod. Node is empty if the pod is not bound.
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid,omitempty"`
	Node      string    `json:"node,omitempty"`
	// Marker and Probe identify the probe in the namespace.
	Marker string `json:"marker"`
	Probe  string `json:"probe"`
	// Container is the container that is probed.
	Container string `json:"container"`
	// State is empty if no state is known.
	State v1alpha1.ProbeState `json:"state,omitempty"`
	// LastProbeTime and LastTransitionTime are zero if they are not known.
	LastProbeTime      metav1.Time `json:"lastProbeTime,omitzero"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Message is the last message of the probe.
	Message string `json:"message,omitempty"`
	// Source is where the state comes from. It is empty if no state is known.
	Source Source `json:"source,omitempty"`
	// Marks are the marks on the pod that belong to the probe, ordered by kind and name.
	Marks []Mark `json:"marks,omitempty"`
	// Refused are the labels and annotations that the pod does not have because the message has no valid
	// value for them, each with the reason in one line.
	Refused []string `json:"refused,omitempty"`
	// Problem is why the probe has no state, or why the state may be outdated.
	Problem *Problem `json:"problem,omitempty"`
	// Guard is the guard that protects the pod from deletion, or nil.
	Guard *Guard `json:"guard,omitempty"`
}

// Guard is a guard that protects a pod.
type Guard struct {
	// Name is that of the PodDisruptionBudget.
	Name string `json:"name"`
	// Since is since when it protects the pod. It is zero if that is not known.
	Since metav1.Time `json:"since,omitzero"`
}

// Text returns the name, and for how long the guard has protected the pod. It is empty if there is none.
func (g *Guard) Text(now time.Time) string {
	switch {
	case g == nil:
		return ""
	case g.Since.IsZero():
		return g.Name
	}
	return g.Name + " " + duration.HumanDuration(max(0, now.Sub(g.Since.Time)))
}

// Source is where the state of a row comes from.
type Source string

// The sources of states.
const (
	// SourceReport is the agent's ProbeReport, or the status of the NodePodProbe.
	SourceReport Source = "report"
	// SourceProvider is the condition that the provider of a virtual node wrote.
	SourceProvider Source = "provider"
	// SourceCondition is the condition of the pod that Seamark set.
	SourceCondition Source = "condition"
	// SourceLabels are the labels and annotations of the pod that Seamark set. They have no
	// times and no message.
	SourceLabels Source = "labels"
)

// Mark is a mark on a pod.
type Mark struct {
	// Kind is condition, label or annotation.
	Kind mark.Kind `json:"kind"`
	// Name is the key of a label or annotation, or the type of a condition.
	Name string `json:"name"`
	// Value is the value, or the status of a condition.
	Value string `json:"value"`
}

// String returns name=value.
func (m Mark) String() string { return m.Name + "=" + m.Value }

// States are the rows of all pods.
type States struct {
	// Rows are ordered by namespace, pod, marker, and the order of the probes in the marker. The
	// probes of a marker that cannot run in the pod follow the others.
	Rows []Row
	// Invalid are the markers that have no effect, with the reason.
	Invalid map[types.NamespacedName]error
	// Guards are those of the pods that are guarded, also of pods without rows.
	Guards map[types.NamespacedName]*Guard
	// Waiting are the pods whose rows change although no object does, because something becomes a
	// problem only after a while. RecheckAt is when the first of them does.
	Waiting   []types.NamespacedName
	RecheckAt time.Time
}

type namespaceMarkers struct {
	all []*v1alpha1.PodProbeMarker
	// compiled are those that have an effect, ordered by name.
	compiled []*plan.Marker
}

// List returns the states of the pods' probes. The rows share the strings of the input.
func List(in Input) States {
	compiled, invalid := compile(in.Markers)
	states := States{Invalid: invalid}
	in.guards = guardsOf(in.Budgets)
	parser := mark.NewParser()
	pods := slices.Clone(in.Pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range pods {
		markers, key := compiled[pod.Namespace], types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		var rows []Row
		if len(markers.compiled) > 0 {
			var recheckAt time.Time
			if rows, recheckAt = in.rowsOf(pod, markers, parser); !recheckAt.IsZero() {
				states.Waiting = append(states.Waiting, key)
				states.RecheckAt = earliest.Time(states.RecheckAt, recheckAt)
			}
			states.Rows = append(states.Rows, rows...)
		}
		guard := in.guard(pod, nil)
		if len(rows) > 0 {
			guard = rows[0].Guard
		}
		if guard != nil {
			if states.Guards == nil {
				states.Guards = map[types.NamespacedName]*Guard{}
			}
			states.Guards[key] = guard
		}
	}
	return states
}

// guardsOf returns the guards by namespace.
func guardsOf(budgets []*policyv1.PodDisruptionBudget) map[string]guard.Guards {
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for _, budget := range budgets {
		byNamespace[budget.Namespace] = append(byNamespace[budget.Namespace], budget)
	}
	guards := make(map[string]guard.Guards, len(byNamespace))
	for namespace, budgets := range byNamespace {
		guards[namespace] = guard.New(budgets)
	}
	return guards
}

// compile returns the markers by namespace, and the errors of those that have no effect.
func compile(markers []*v1alpha1.PodProbeMarker) (map[string]namespaceMarkers, map[types.NamespacedName]error) {
	byNamespace := map[string]namespaceMarkers{}
	invalid := map[types.NamespacedName]error{}
	for _, m := range markers {
		list := byNamespace[m.Namespace]
		list.all = append(list.all, m)
		if compiled, err := plan.Compile(m); err == nil {
			list.compiled = append(list.compiled, compiled)
		} else {
			invalid[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = err
		}
		byNamespace[m.Namespace] = list
	}
	for namespace, list := range byNamespace {
		list.compiled = plan.Sorted(list.compiled)
		byNamespace[namespace] = list
	}
	return byNamespace, invalid
}

// Changes are the pods whose rows must be computed again because objects have changed. If a changed
// object belongs to another pod or node than before, both versions must be added.
type Changes struct {
	// Pods are single pods.
	Pods sets.Set[types.NamespacedName]
	// Namespaces and Nodes are those whose pods must all be computed again.
	Namespaces, Nodes sets.Set[string]
}

// NewChanges returns empty Changes.
func NewChanges() Changes {
	return Changes{Pods: sets.New[types.NamespacedName](), Namespaces: sets.New[string](), Nodes: sets.New[string]()}
}

// Add records that an object of an Input has changed. It ignores any other object.
func (c Changes) Add(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		c.Pods.Insert(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	case *v1alpha1.PodProbeMarker:
		c.Namespaces.Insert(o.Namespace)
	case *policyv1.PodDisruptionBudget:
		c.Namespaces.Insert(o.Namespace)
	case *metav1.PartialObjectMetadata:
		c.Nodes.Insert(o.Name)
	case *v1alpha1.NodePodProbe:
		c.Nodes.Insert(o.Name)
	case *seamarkv1alpha1.ProbePlan:
		c.Nodes.Insert(o.NodeName)
	case *seamarkv1alpha1.ProbeReport:
		c.Nodes.Insert(o.NodeName)
	}
}

// Affects reports whether the rows of the pod must be computed again.
func (c Changes) Affects(pod *corev1.Pod) bool {
	return c.Namespaces.Has(pod.Namespace) || c.Nodes.Has(pod.Spec.NodeName) ||
		c.Pods.Has(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
}
