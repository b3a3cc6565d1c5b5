// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// report adds a step for each planned probe about what is reported.
func (e *explainer) report() {
	if e.guessed {
		e.unread(permission.Reports, "Report", "the states that the agent reported")
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
	if f := e.findings.Report(p); f != nil {
		e.explain(title, p, f)
		return
	}
	state, known := e.view.Report.State(p)
	if !known {
		e.add(Step{Title: title, Verdict: Unknown, Text: "the state is unknown", Evidence: e.lastEvents(p)})
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
	switch {
	case e.view.Report.IsStale(p):
		step.Verdict, step.Next = Problem, e.stale()
		step.Evidence = append(step.Evidence, fmt.Sprintf("the state is stale: %s for %s", causeText(e.in.Outage.Cause), e.age(e.in.Outage.Since)))
	case e.view.Report.Held[p.ID] == mark.Lost:
		reason, selector := e.view.Loss(p.ID)
		step.Verdict, step.Next = Info, e.kubectl("get pods -l %s", selector)
		step.Evidence = append(step.Evidence, "the state counts as Unknown: "+reason)
	case e.view.Report.Held[p.ID] == mark.Waiting:
		step.Verdict, step.Next = Waiting, e.kubectl("describe podprobemarker %s", p.ID.Marker)
		step.Evidence = append(step.Evidence, "the pod waits for the exclusive marks of the state")
	case state.State == v1alpha1.ProbeUnknown:
		step.Verdict = Waiting
		step.Evidence = append(step.Evidence, "the container is new and has no result yet")
		step.Next = e.follow()
	case state.State == v1alpha1.ProbeFailed:
		step.Verdict, step.Next = Info, e.try(p)
		if diagnosis.TimedOut(state.Message) {
			step.Evidence = append(step.Evidence, fmt.Sprintf("timeoutSeconds is %d: raise it, or make the probe cheaper", p.Plan.Probe.TimeoutSeconds))
		}
	}
	e.add(step)
}

// causeText says why states are not current.
func causeText(cause staleness.Cause) string {
	switch cause {
	case staleness.NodeGone:
		return "the node has been gone"
	case staleness.NodeNotReady:
		return "the node has not been ready"
	case staleness.AgentGone:
		return "the node has had no agent"
	default:
		return "the agent has not been ready"
	}
}

// stale returns the command that shows why states are not current.
func (e *explainer) stale() string {
	switch e.in.Outage.Cause {
	case staleness.AgentNotReady, staleness.AgentGone:
		return e.agentLogs()
	case staleness.NodeGone:
		return "kubectl get nodes"
	default:
		return "kubectl describe node " + e.in.Pod.Spec.NodeName
	}
}

// try returns the command that runs the probe as well as kubectl can. A container that does not run is inspected instead.
func (e *explainer) try(p plan.PlannedProbe) string {
	probe, pod := &p.Plan.Probe, e.in.Pod.Name
	for _, status := range statusesOf(e.in.Pod) {
		if status.Name == p.Plan.ContainerName && status.State.Running == nil {
			return cmp.Or(logsOf(e.in.Namespace, pod, &status), e.kubectl("describe pod %s", pod))
		}
	}
	switch {
	case probe.Exec != nil:
		return e.kubectl("exec %s -c %s -- %s", pod, text.Shell([]string{p.Plan.ContainerName}), text.Shell(probe.Exec.Command))
	case probe.HTTPGet != nil:
		scheme := ""
		if probe.HTTPGet.Scheme == corev1.URISchemeHTTPS {
			scheme = "https:"
		}
		return "kubectl get --raw " + text.Shell([]string{fmt.Sprintf("/api/v1/namespaces/%s/pods/%s%s:%s/proxy/%s",
			e.in.Namespace, scheme, pod, probe.HTTPGet.Port.String(), strings.TrimPrefix(probe.HTTPGet.Path, "/"))})
	default:
		return e.kubectl("logs %s -c %s --tail=20", pod, text.Shell([]string{p.Plan.ContainerName}))
	}
}

// explain adds the step about a finding, with the evidence and the next command.
func (e *explainer) explain(title string, p plan.PlannedProbe, f *diagnosis.Finding) {
	step := Step{Title: title, Verdict: Problem, Text: f.String(), Next: e.agentLogs()}
	if f.Waiting {
		step.Verdict = Waiting
	}
	switch f.Reason {
	case diagnosis.NoAddress, diagnosis.NotProvided, diagnosis.NotStarted:
		step.Next = inspect(e.in.Namespace, e.in.Pod)
	case diagnosis.NoPlan, diagnosis.NotPlanned, diagnosis.PlanOutdated:
		step.Next, step.Evidence = e.managerLogs(), planDifferences(diagnosis.Entry(e.in.Plan, e.in.Pod), e.want())
	case diagnosis.PlanNotRunning:
		if f.Waiting && e.allReported() {
			// The plan changes with every pod of the node.
			step.Verdict, step.Next, f.Until = Info, "", time.Time{}
		}
	case diagnosis.Reason(v1alpha1.ProbeCannotRun), diagnosis.Reason(v1alpha1.ProbeNotEnded), diagnosis.Reason(v1alpha1.ProbeWaitingForSlot):
		step.Evidence = []string{"a probe without a result does not change the marks"}
		if f.Reason == diagnosis.Reason(v1alpha1.ProbeCannotRun) {
			// kubectl could not run it either. The marker says what is run.
			step.Next = e.kubectl("get podprobemarker %s -o yaml", p.ID.Marker)
		}
	case diagnosis.Reason(v1alpha1.ProbeRateLimited):
		step.Evidence, step.Next = []string{"its results count as usual"}, ""
	case diagnosis.StateNotVisible:
		step.Verdict, step.Next, step.Evidence = Unknown, "", e.lastEvents(p)
	case diagnosis.NoResult:
		policy := thresholds.PlannedPolicy(&p.Plan.Probe)
		step.Evidence = []string{fmt.Sprintf("the first state takes %d successes or %d failures in a row, one run every %s, %s after the start",
			policy.SuccessThreshold, policy.FailureThreshold, policy.Period, policy.InitialDelay)}
		if !f.Waiting {
			step.Evidence = append(step.Evidence, "it was due "+e.age(f.Due)+" ago")
		}
	}
	if !f.Until.IsZero() {
		step.Next = e.follow()
	}
	e.add(step)
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
