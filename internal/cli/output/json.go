// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output prints the changes in a local run, one line per change: as JSON for
// programs, in the stable format that docs/local.md describes, and as text.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local"
)

// record is the JSON form of a change. The format is stable: fields may be added, but not
// renamed or removed.
type record struct {
	// Kind is the kind of the change. It determines which of the fields below are set.
	Kind local.ChangeKind `json:"kind"`
	// Time is the time of the change, in UTC with microseconds.
	Time metav1.MicroTime `json:"time"`
	// Namespace and Pod are the namespace and name of the pod.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Container is the name of the container, if the change concerns one.
	Container string `json:"container,omitempty"`

	// Phase is set for the kind Pod.
	Phase corev1.PodPhase `json:"phase,omitempty"`
	// ContainerStatus is set for the kind Container.
	ContainerStatus *containerRecord `json:"containerStatus,omitempty"`
	// Probe is set for the kind Probe.
	Probe *probeRecord `json:"probe,omitempty"`
	// Condition is set for the kind Condition.
	Condition *conditionRecord `json:"condition,omitempty"`
	// Label and Annotation are set for the kinds Label and Annotation.
	Label      *keyValue `json:"label,omitempty"`
	Annotation *keyValue `json:"annotation,omitempty"`
	// Removed is true if a condition, label or annotation was removed. Its fields then have
	// their last values.
	Removed bool `json:"removed,omitempty"`
	// Event is set for the kind Event.
	Event *local.PodEvent `json:"event,omitempty"`
	// Log is set for the kind Log.
	Log *local.LogLine `json:"log,omitempty"`
}

// containerRecord has the fields of status.containerStatuses that apply to a process.
type containerRecord struct {
	Ready        bool                  `json:"ready"`
	Started      bool                  `json:"started"`
	RestartCount int32                 `json:"restartCount"`
	State        corev1.ContainerState `json:"state"`
	LastState    corev1.ContainerState `json:"lastState,omitzero"`
}

// probeRecord is a probe after a run or after another change of its state.
type probeRecord struct {
	*local.ProbeChange
	LastTransitionTime metav1.MicroTime `json:"lastTransitionTime,omitzero"`
	LastProbeTime      metav1.MicroTime `json:"lastProbeTime,omitzero"`
	// Result is Success or Failure, or empty if the newest run has no result.
	Result string `json:"result,omitempty"`
}

type conditionRecord struct {
	Type               corev1.PodConditionType `json:"type"`
	Status             corev1.ConditionStatus  `json:"status"`
	Reason             string                  `json:"reason,omitempty"`
	Message            string                  `json:"message,omitempty"`
	LastTransitionTime metav1.MicroTime        `json:"lastTransitionTime,omitzero"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// JSON prints each change as a JSON object on one line.
type JSON struct{ encoder *json.Encoder }

// NewJSON returns a printer that writes to out.
func NewJSON(out io.Writer) *JSON {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return &JSON{encoder: encoder}
}

// Print prints the change.
func (p *JSON) Print(change local.Change) error {
	if err := p.encoder.Encode(recordOf(change)); err != nil {
		return fmt.Errorf("write change: %w", err)
	}
	return nil
}

func recordOf(change local.Change) record {
	r := record{
		Kind: change.Kind, Time: metav1.NewMicroTime(change.Time),
		Namespace: change.Namespace, Pod: change.Pod, Container: change.Container,
		Phase: change.Phase, Removed: change.Removed, Event: change.Event, Log: change.Log,
	}
	switch change.Kind {
	case local.KindContainer:
		status := change.Status
		r.ContainerStatus = &containerRecord{
			Ready: status.Ready, Started: status.Started != nil && *status.Started,
			RestartCount: status.RestartCount, State: status.State, LastState: status.LastTerminationState,
		}
	case local.KindProbe:
		r.Probe = &probeRecord{
			ProbeChange:        change.Probe,
			LastTransitionTime: metav1.NewMicroTime(change.Probe.LastTransition), LastProbeTime: metav1.NewMicroTime(change.Probe.LastProbe),
		}
		// A run without a result, such as an error of the probe, begins no streak.
		switch {
		case change.Probe.Streak == 0:
		case change.Probe.Success:
			r.Probe.Result = "Success"
		default:
			r.Probe.Result = "Failure"
		}
	case local.KindCondition:
		c := change.Condition
		r.Condition = &conditionRecord{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: metav1.NewMicroTime(c.LastTransitionTime.Time),
		}
	case local.KindLabel:
		r.Label = &keyValue{Key: change.Key, Value: change.Value}
	case local.KindAnnotation:
		r.Annotation = &keyValue{Key: change.Key, Value: change.Value}
	}
	return r
}
