// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// probeChanged stores the state of a probe and passes it to what depends on it: the report on a
// marker's probe, the container on a transition of one of the kubelet's.
func (l *loop) probeChanged(now time.Time, change worker.Change) {
	planned, stored := l.lookup(change.Key)
	if stored == nil {
		return
	}
	state, transition := change.State, change.Transition != nil
	stored.State, stored.Message, stored.LastTransition = state.State, state.Message, state.LastTransition
	if transition || stored.Ran {
		l.addProbe(now, planned.pod, stored, transition)
	}
	switch {
	case planned.kind == ProbeMarker:
		l.states[change.Key] = state
		l.reporting.schedule(now)
	case transition:
		l.probed(now, planned, change.Key.Name, change.Transition.To)
	}
}

// probeGone removes the state of a probe that the worker no longer runs, unless it is planned
// again.
func (l *loop) probeGone(key identity.Key) {
	if _, again := l.planned[key]; again {
		return
	}
	if p := l.pod(key.PodUID); p != nil {
		delete(p.marked, key)
	}
	delete(l.states, key)
}

// ran stores the result of a run. The worker then reports the state of the probe, and
// probeChanged adds both as one change. A run without a result does not change the state, so ran
// adds the change itself. Runs of startup probes are shown for the kubelet's.
func (l *loop) ran(now time.Time, run worker.Run) {
	planned, stored := l.lookup(run.Key)
	if stored == nil || run.Startup {
		return
	}
	stored.Runs++
	stored.LastProbe = now
	stored.Ran = true
	if run.Err != nil {
		stored.Error = reasonFirst(run)
		l.failed(now, planned.pod, run.Key.Name, append(slices.Clone(planned.command), stored.Error)...)
		l.addProbe(now, planned.pod, stored, false)
		l.unhealthy(now, run, planned, "errored and resulted in unknown state", stored.Error)
		return
	}
	stored.Error = ""
	stored.Success, stored.Output, stored.Streak = run.Outcome.Success, run.Outcome.Message, run.Streak
	stored.Threshold = planned.policy.FailureThreshold
	if stored.Success {
		stored.Threshold = planned.policy.SuccessThreshold
		return
	}
	texts := slices.Clone(planned.command)
	if run.Handler == probing.HandlerExec {
		// What a server answers may have paths of its own.
		texts = append(texts, run.Outcome.Message)
	}
	l.failed(now, planned.pod, run.Key.Name, texts...)
	l.unhealthy(now, run, planned, "failed", run.Outcome.Message)
}

// reasonFirst returns the error of a run. For a command, it starts with its cause: the text
// before it names the container and the program, which are known.
func reasonFirst(run worker.Run) string {
	text := run.Err.Error()
	if run.Handler != probing.HandlerExec {
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
func (l *loop) unhealthy(now time.Time, run worker.Run, planned plannedProbe, verb, message string) {
	if planned.kind != ProbeMarker {
		l.addEvent(now, planned.pod, run.Key.Name, corev1.EventTypeWarning, lifecycle.ReasonUnhealthy,
			fmt.Sprintf("%s probe %s: %s", planned.kind, verb, message))
	}
}

// lookup returns a planned probe and its stored state. The state is nil if the probe is not
// planned, or its container has restarted.
func (l *loop) lookup(key identity.Key) (plannedProbe, *ProbeChange) {
	planned, known := l.planned[key]
	p := l.pod(key.PodUID)
	if !known || p == nil {
		return plannedProbe{}, nil
	}
	if planned.kind != ProbeMarker {
		if c := p.machine.Container(key.Name); c == nil || c.ID != planned.id {
			return plannedProbe{}, nil
		}
		return planned, p.kubelet[kubeletProbe{key.Name, planned.kind}]
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
