// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// changed stores the state of a probe and returns what the probe was planned for. It
// returns false if the probe is no longer planned, or its container has restarted.
func (ps *probes) changed(now time.Time, change worker.Change) (plannedProbe, bool) {
	planned, stored := ps.lookup(change.Key)
	if stored == nil {
		return plannedProbe{}, false
	}
	state := change.State
	stored.State, stored.Message, stored.LastTransition = state.State, state.Message, state.LastTransition
	transition := change.Transition != nil
	if transition || stored.Ran {
		ps.changes.probe(now, planned.pod, stored, transition)
	}
	return planned, true
}

// gone removes the state of a probe that the worker no longer runs. It returns false if the
// probe is planned again.
func (ps *probes) gone(key probeid.Key) bool {
	if _, again := ps.planned[key]; again {
		return false
	}
	if p, _ := ps.pods.of(key.ContainerKey); p != nil {
		delete(p.marked, key)
	}
	return true
}

// ran stores the result of a run. The worker then reports the state of the probe, and
// changed adds both as one change. A run without a result does not change the state, so ran
// adds the change itself.
func (ps *probes) ran(now time.Time, run worker.Run) {
	planned, stored := ps.lookup(run.Key)
	if stored == nil {
		return
	}
	stored.Runs++
	stored.LastProbe = now
	stored.Ran = true
	if run.Err != nil {
		stored.Error = reasonFirst(run)
		ps.changes.probe(now, planned.pod, stored, false)
		ps.unhealthy(now, run, planned, "errored and resulted in unknown state", stored.Error)
		return
	}
	stored.Error = ""
	stored.Success, stored.Output, stored.Streak = run.Outcome.Success, run.Outcome.Message, run.Streak
	stored.Threshold = planned.policy.FailureThreshold
	if stored.Success {
		stored.Threshold = planned.policy.SuccessThreshold
		return
	}
	ps.unhealthy(now, run, planned, "failed", run.Outcome.Message)
}

// reasonFirst returns the error of a run. For a command, it starts with its cause: the text
// before it names the container and the program, which are known.
func reasonFirst(run worker.Run) string {
	text := run.Err.Error()
	if run.Handler != probe.HandlerExec {
		return text
	}
	at := strings.LastIndex(text, ": ")
	if at < 0 {
		return text
	}
	context := text[:at]
	if strings.HasPrefix(context, "run command in container ") {
		_, context, _ = strings.Cut(context, ": ")
	}
	if context == "" {
		return text[at+2:]
	}
	return text[at+2:] + " (" + context + ")"
}

// unhealthy writes the kubelet's event if a run of one of its probes did not succeed.
func (ps *probes) unhealthy(now time.Time, run worker.Run, planned plannedProbe, verb, message string) {
	if planned.kind != ProbeMarker {
		ps.changes.event(now, planned.pod, run.Key.Name, corev1.EventTypeWarning, lifecycle.ReasonUnhealthy,
			fmt.Sprintf("%s probe %s: %s", planned.kind, verb, message))
	}
}

// lookup returns a planned probe and its stored state. The state is nil if the probe is not
// planned, or its container has restarted.
func (ps *probes) lookup(key probeid.Key) (plannedProbe, *ProbeChange) {
	planned, known := ps.planned[key]
	p, c := ps.pods.of(key.ContainerKey)
	if !known || p == nil {
		return plannedProbe{}, nil
	}
	if planned.kind != ProbeMarker {
		if c == nil || c.ID != planned.id {
			return plannedProbe{}, nil
		}
		return planned, p.kubelet[kubeletProbe{c.Spec.Name, planned.kind}]
	}
	stored := p.marked[key]
	if stored == nil {
		stored = &ProbeChange{
			Type: ProbeMarker, Marker: key.Marker, Name: key.Probe, Container: key.Name,
			Handler: string(planned.handler), Active: true,
		}
		p.marked[key] = stored
	}
	return planned, stored
}
