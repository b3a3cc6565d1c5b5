// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output writes what happens in a local run, one line a change: as JSON for
// programs, whose form docs/local.md promises, and as text for people.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
)

// record is the JSON form of a change. Its fields and their meaning are a promise to those
// who read them: fields may be added, none is renamed or removed.
type record struct {
	// Kind says what changed, and so which of the fields below are there.
	Kind local.Kind `json:"kind"`
	// Time is when, to the microsecond, in UTC.
	Time metav1.MicroTime `json:"time"`
	// Namespace and Pod name the pod.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Container names the container, where the change is about one.
	Container string `json:"container,omitempty"`

	// Phase is there for a Pod.
	Phase corev1.PodPhase `json:"phase,omitempty"`
	// ContainerStatus is there for a Container.
	ContainerStatus *containerStatus `json:"containerStatus,omitempty"`
	// Probe is there for a Probe.
	Probe *probe `json:"probe,omitempty"`
	// Condition is there for a Condition.
	Condition *condition `json:"condition,omitempty"`
	// Label and Annotation are there for a Label and an Annotation.
	Label      *keyValue `json:"label,omitempty"`
	Annotation *keyValue `json:"annotation,omitempty"`
	// Removed is true for a condition, label or annotation that is gone; what is shown of
	// it is then what it was.
	Removed bool `json:"removed,omitempty"`
	// Event is there for an Event.
	Event *event `json:"event,omitempty"`
	// Log is there for a Log.
	Log *logLine `json:"log,omitempty"`
}

// containerStatus has the fields of a pod's status.containerStatuses that say something
// of a process.
type containerStatus struct {
	Ready        bool                   `json:"ready"`
	Started      bool                   `json:"started"`
	RestartCount int32                  `json:"restartCount"`
	State        corev1.ContainerState  `json:"state"`
	LastState    *corev1.ContainerState `json:"lastState,omitempty"`
}

// probe is a probe after a run, or after another change of its state.
type probe struct {
	Type    local.ProbeType `json:"type"`
	Marker  string          `json:"marker,omitempty"`
	Name    string          `json:"name,omitempty"`
	Handler string          `json:"handler"`
	Active  bool            `json:"active"`

	State              v1alpha1.ProbeState `json:"state,omitempty"`
	Message            string              `json:"message"`
	LastTransitionTime *metav1.MicroTime   `json:"lastTransitionTime,omitempty"`
	Transition         bool                `json:"transition"`

	Ran           bool              `json:"ran"`
	Result        result            `json:"result,omitempty"`
	Output        string            `json:"output,omitempty"`
	Error         string            `json:"error,omitempty"`
	LastProbeTime *metav1.MicroTime `json:"lastProbeTime,omitempty"`
	Streak        int               `json:"streak"`
	Threshold     int               `json:"threshold"`
	Runs          int               `json:"runs"`
}

// result is what one run of a probe said.
type result string

const (
	success result = "Success"
	failure result = "Failure"
)

type condition struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	Reason             string                  `json:"reason,omitempty"`
	Message            string                  `json:"message,omitempty"`
	LastTransitionTime *metav1.MicroTime       `json:"lastTransitionTime,omitempty"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type logLine struct {
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// JSON writes changes as JSON, one object a line.
type JSON struct{ encoder *json.Encoder }

// NewJSON returns a printer that writes to out.
func NewJSON(out io.Writer) *JSON {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return &JSON{encoder: encoder}
}

// Print writes the change.
func (p *JSON) Print(change local.Change) error {
	if err := p.encoder.Encode(recordOf(change)); err != nil {
		return fmt.Errorf("write a change: %w", err)
	}
	return nil
}

func recordOf(change local.Change) record {
	r := record{
		Kind: change.Kind, Time: metav1.NewMicroTime(change.Time),
		Namespace: change.Namespace, Pod: change.Pod, Container: change.Container,
		Phase: change.Phase, Removed: change.Removed,
	}
	pair := &keyValue{Key: change.Key, Value: change.Value}
	switch change.Kind {
	case local.KindContainer:
		r.ContainerStatus = statusOf(change.Status)
	case local.KindProbe:
		r.Probe = probeOf(change.Probe)
	case local.KindCondition:
		c := change.Condition
		r.Condition = &condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: instant(metav1.NewMicroTime(c.LastTransitionTime.Time)),
		}
	case local.KindLabel:
		r.Label = pair
	case local.KindAnnotation:
		r.Annotation = pair
	case local.KindEvent:
		r.Event = &event{Type: change.Event.Type, Reason: change.Event.Reason, Message: change.Event.Message}
	case local.KindLog:
		r.Log = &logLine{Stream: change.Log.Stream, Text: change.Log.Text}
	}
	return r
}

func statusOf(status *corev1.ContainerStatus) *containerStatus {
	out := &containerStatus{
		Ready: status.Ready, Started: status.Started != nil && *status.Started,
		RestartCount: status.RestartCount, State: status.State,
	}
	if last := status.LastTerminationState; last.Terminated != nil {
		out.LastState = &last
	}
	return out
}

func probeOf(p *local.Probe) *probe {
	out := &probe{
		Type: p.Type, Marker: p.Marker, Name: p.Name, Handler: p.Handler, Active: p.Active,
		State: p.State, Message: p.Message, Transition: p.Transition,
		LastTransitionTime: instant(metav1.NewMicroTime(p.LastTransition)),
		Ran:                p.Ran, Output: p.Output, Error: p.Error,
		LastProbeTime: instant(metav1.NewMicroTime(p.LastProbe)),
		Streak:        p.Streak, Threshold: p.Threshold, Runs: p.Runs,
	}
	if !p.LastProbe.IsZero() {
		out.Result = failure
		if p.Success {
			out.Result = success
		}
	}
	return out
}

// instant returns nil for a time that never was.
func instant(t metav1.MicroTime) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &t
}
