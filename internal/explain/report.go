// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/view"
)

// startup is how long a container may take to start before it is a problem.
const startup = 2 * time.Minute

// report adds a step for each planned probe about what is reported.
func (e *explainer) report() {
	if e.guessed {
		e.unread(SourceReports, "Report", "the states that the agent reported")
	}
	for _, p := range e.view.Plan.Probes {
		if !e.shown(p.ID.Marker) || e.planned != nil && !e.planned[p.Plan.Name] {
			continue
		}
		e.reported(p)
	}
}

// reported adds the step about the state of a probe.
func (e *explainer) reported(p plan.PlannedProbe) {
	title := "Report of " + p.ID.String()
	if i := slices.IndexFunc(e.errors, func(r v1alpha1.ContainerProbeError) bool { return r.Name == p.Plan.Name }); i >= 0 {
		problem := plan.Problem{ID: p.ID, Reason: plan.Reason(e.errors[i].Reason)}
		next := e.agentLogs()
		if e.errors[i].Reason == v1alpha1.ProbeCannotRun {
			next = e.try(p)
		}
		e.problem(title, view.ProblemText(problem)+": "+e.errors[i].Message, next, "a probe without a result does not change the marks")
		return
	}
	state, known := e.view.Report.State(p)
	if !known {
		e.noState(title, p)
		return
	}
	what := string(state.State)
	if !state.LastTransitionTime.IsZero() {
		what += " for " + e.age(state.LastTransitionTime.Time)
	}
	if state.Message != "" {
		what += ": " + strings.TrimSpace(state.Message)
	}
	if e.guessed {
		what += " (from the condition of the pod)"
	}
	step := Step{Title: title, Verdict: OK, Text: what}
	if !state.LastProbeTime.IsZero() {
		step.Evidence = append(step.Evidence, "result of "+state.LastProbeTime.UTC().Format(time.RFC3339))
	}
	switch state.State {
	case v1alpha1.ProbeUnknown:
		step.Verdict = Waiting
		step.Evidence = append(step.Evidence, "the container is new and has no result yet")
		step.Next = e.again()
	case v1alpha1.ProbeFailed:
		step.Verdict, step.Next = Info, e.try(p)
		if timedOut(state.Message) {
			step.Evidence = append(step.Evidence, fmt.Sprintf("timeoutSeconds is %d: raise it, or make the probe cheaper", p.Plan.Probe.TimeoutSeconds))
		}
	}
	e.add(step)
}

// timedOut reports whether the message is that of a probe that exceeded its timeout, with any
// handler.
func timedOut(message string) bool {
	return strings.HasPrefix(message, "timed out after ") || strings.Contains(message, "deadline exceeded") || strings.Contains(message, "i/o timeout")
}

// try returns the command that runs the probe as well as kubectl can.
func (e *explainer) try(p plan.PlannedProbe) string {
	probe, pod := &p.Plan.Probe, e.in.Pod.Name
	switch {
	case probe.Exec != nil:
		return e.kubectl("exec %s -c %s -- %s", pod, p.Plan.ContainerName, quoted(probe.Exec.Command))
	case probe.HTTPGet != nil:
		scheme := ""
		if probe.HTTPGet.Scheme == corev1.URISchemeHTTPS {
			scheme = "https:"
		}
		return "kubectl get --raw " + quoted([]string{fmt.Sprintf("/api/v1/namespaces/%s/pods/%s%s:%s/proxy/%s",
			e.in.Namespace, scheme, pod, probe.HTTPGet.Port.String(), strings.TrimPrefix(probe.HTTPGet.Path, "/"))})
	default:
		return e.kubectl("logs %s -c %s --tail=20", pod, p.Plan.ContainerName)
	}
}

// noState adds the step about a probe that has no state.
func (e *explainer) noState(title string, p plan.PlannedProbe) {
	if e.view.Report.Provider {
		e.add(Step{Title: title, Verdict: Waiting, Next: e.kubectl("describe pod %s", e.in.Pod.Name),
			Text: fmt.Sprintf("the provider has not set the condition %s", p.Source.PodConditionType)})
		return
	}
	if e.notStarted(title, p) {
		return
	}
	if e.guessed {
		e.add(Step{Title: title, Verdict: Unknown, Text: "the state is unknown", Evidence: e.lastEvents(p)})
		return
	}
	if _, found := e.view.Report.States[p.ID]; found {
		e.late(e.changed(), title, "the reported state is that of an earlier marker with the same name", e.agentLogs())
		return
	}
	e.pending(title, p)
}

// notStarted adds a step if the container of the probe has never run: it has no state until then.
func (e *explainer) notStarted(title string, p plan.PlannedProbe) bool {
	status := e.status(p.Plan.ContainerName)
	if status != nil && (status.ContainerID != "" || status.RestartCount > 0 || status.LastTerminationState.Terminated != nil ||
		status.State.Running != nil || status.State.Terminated != nil) {
		return false
	}
	describe := e.kubectl("describe pod %s", e.in.Pod.Name)
	text := fmt.Sprintf("no state: container %s has not started", p.Plan.ContainerName)
	switch {
	case status == nil || status.State.Waiting == nil:
		e.unstarted(title, text, describe)
	case status.State.Waiting.Reason == "ContainerCreating" || status.State.Waiting.Reason == "PodInitializing" || status.State.Waiting.Reason == "":
		e.unstarted(title, text+" ("+reasonOf(status.State.Waiting)+")", describe)
	default:
		e.problem(title, text+" ("+reasonOf(status.State.Waiting)+")", describe)
	}
	return true
}

// unstarted adds that the container is starting, which is a problem after a while.
func (e *explainer) unstarted(title, text, next string) {
	e.late(e.changed().Add(startup-settle), title, text, next)
}

// status returns the status of a container or sidecar, or nil if there is none.
func (e *explainer) status(container string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{e.in.Pod.Status.ContainerStatuses, e.in.Pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				return &statuses[i]
			}
		}
	}
	return nil
}

// pending adds the step about the first result of a probe whose container runs or has run: when it
// is due according to the delay, the period and the thresholds.
func (e *explainer) pending(title string, p plan.PlannedProbe) {
	policy := streak.PolicyOf(&p.Plan.Probe.Probe)
	start := edited(e.in.Plan)
	if e.in.Plan == nil {
		start = e.changed()
	}
	if status := e.status(p.Plan.ContainerName); status != nil && status.State.Running != nil {
		if first := status.State.Running.StartedAt.Add(policy.InitialDelay); first.After(e.in.Now) {
			e.add(Step{Title: title, Verdict: Waiting, Next: e.again(), Text: fmt.Sprintf(
				"no state: the first run is in %s (initialDelaySeconds %d)", first.Sub(e.in.Now).Round(time.Second), p.Plan.Probe.InitialDelaySeconds)})
			return
		} else if first.After(start) {
			start = first
		}
	}
	threshold := max(policy.SuccessThreshold, policy.FailureThreshold)
	timeout := time.Duration(p.Plan.Probe.TimeoutSeconds) * time.Second
	due := start.Add(time.Duration(threshold)*policy.Period + timeout)
	counts := fmt.Sprintf("the first state takes %d successes or %d failures in a row, one run every %s",
		policy.SuccessThreshold, policy.FailureThreshold, policy.Period)
	if e.in.Now.Before(due.Add(settle)) {
		e.add(Step{Title: title, Verdict: Waiting, Text: "no state yet: no threshold has been reached", Evidence: []string{counts}, Next: e.again()})
		return
	}
	e.problem(title, "no state: the agent has reported none, although one was due "+e.age(due)+" ago", e.agentLogs(), counts)
}

// lastEvents returns the last event about each result of the probe, if the report cannot be read.
func (e *explainer) lastEvents(p plan.PlannedProbe) []string {
	var found []corev1.Event
	for _, event := range e.in.Events {
		if event.InvolvedObject.UID == e.in.Pod.UID && strings.HasPrefix(event.Message, p.Plan.Name) {
			found = append(found, event)
		}
	}
	slices.SortFunc(found, func(a, b corev1.Event) int {
		return cmp.Or(eventTime(b).Compare(eventTime(a)), strings.Compare(a.Name, b.Name))
	})
	var lines []string
	for _, event := range found[:min(len(found), 3)] {
		lines = append(lines, fmt.Sprintf("event %s %s ago: %s", event.Reason, e.age(eventTime(event)), event.Message))
	}
	return lines
}

// eventTime returns when the event last occurred.
func eventTime(event corev1.Event) time.Time {
	last := event.LastTimestamp.Time
	for _, other := range []time.Time{event.EventTime.Time, event.CreationTimestamp.Time} {
		if last.IsZero() {
			last = other
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	return last
}
