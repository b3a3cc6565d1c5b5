// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// explainer collects the steps.
type explainer struct {
	in    Input
	steps []Step
	// held is a sentence about what the set of the pod waits for in the pod, without a period. It is empty if it does not.
	held string
	// following is the command that shows what is waited for, if it is not a pod.
	following string
	// compiled are the valid markers of the namespace, and invalid the errors of the others.
	compiled []*plan.Marker
	invalid  map[string]error

	// options are the settings of the manager, as far as the objects show them.
	options podview.Options
	// view is what the manager computes. guessed is whether its states are taken from the
	// conditions of the pod, because the reports could not be read.
	view    podview.Pod
	guessed bool
	// findings are why probes have no state. waiting is why none of them runs, or nil.
	findings *diagnosis.Pod
	waiting  *diagnosis.Finding
	// desired are the marks that the pod should have, and owned those of Seamark that it has.
	desired, owned mark.Marks
	// planned are the wire names of the probes in the plan of the node. It is nil if unknown.
	planned map[string]bool
}

func (e *explainer) add(step Step) { e.steps = append(e.steps, step) }

func (e *explainer) problem(title, text, next string, evidence ...string) {
	e.add(Step{Title: title, Verdict: Problem, Text: text, Next: next, Evidence: evidence})
}

// late adds a Problem, or that the pod is waiting if the cause may be a change at the given time.
func (e *explainer) late(changed time.Time, title, text, next string, evidence ...string) {
	step := Step{Title: title, Verdict: Problem, Text: text, Next: next, Evidence: evidence}
	if e.in.Now.Sub(changed) < diagnosis.Settle {
		step.Verdict, step.Next = Waiting, e.follow()
	}
	e.add(step)
}

// unread adds an Unknown if the resource could not be read.
func (e *explainer) unread(resource permission.Resource, title, what string) bool {
	missing, found := e.in.Unread[resource]
	switch {
	case !found:
		return false
	case missing.Verb == "":
		e.problem(title, what+" cannot be read, because Seamark is not installed in the cluster", cmp.Or(e.in.Program, "seamark")+" check", missing.String())
		return true
	}
	command := "kubectl"
	if missing.Namespace != "" {
		command += " -n " + missing.Namespace
	}
	e.add(Step{
		Title: title, Verdict: Unknown, Text: what + " cannot be read: " + missing.String(),
		Next: fmt.Sprintf("%s auth can-i %s %s", command, missing.Verb, missing.Resource),
	})
	return true
}

// first returns the first step with the verdict, or nil. Of the steps with the verdict Info, only
// those with a command count.
func (e *explainer) first(verdict planning.Severity) *Step {
	i := slices.IndexFunc(e.steps, func(s Step) bool { return s.Verdict == verdict && (verdict != Info || s.Next != "") })
	if i < 0 {
		return nil
	}
	return &e.steps[i]
}

// unchecked returns the titles of the steps that could not be checked.
func (e *explainer) unchecked() []string {
	var titles []string
	for _, step := range e.steps {
		if step.Verdict == Unknown {
			titles = append(titles, step.Title)
		}
	}
	return titles
}

// shown reports whether the steps of the marker are requested.
func (e *explainer) shown(marker string) bool { return e.in.Marker == "" || e.in.Marker == marker }

// age returns how long ago something was, such as 5s.
func (e *explainer) age(at time.Time) string { return duration.HumanDuration(max(0, e.in.Now.Sub(at))) }

// kubectl returns a command in the namespace of the pod.
func (e *explainer) kubectl(format string, args ...any) string {
	return "kubectl -n " + e.in.Namespace + " " + fmt.Sprintf(format, args...)
}

// system returns a command in the namespace of the managers and agents.
func (e *explainer) system(format string, args ...any) string {
	return "kubectl -n " + e.in.SystemNamespace + " " + fmt.Sprintf(format, args...)
}

// managerLogs returns the command that shows why the manager does not do something.
func (e *explainer) managerLogs() string {
	return e.system("logs -l app.kubernetes.io/component=manager --tail=50")
}

// agentLogs returns the command that shows why the agent of the node does not do something.
func (e *explainer) agentLogs() string {
	if agent := e.in.Agent; agent != nil {
		for _, status := range statusesOf(agent) {
			if logs := logsOf(e.in.SystemNamespace, agent.Name, &status); logs != "" && status.State.Running == nil {
				return logs
			}
		}
		if !plan.HasRun(agent) {
			return inspect(e.in.SystemNamespace, agent)
		}
		return e.system("logs %s --tail=50", agent.Name)
	}
	return e.system("get pods -l app.kubernetes.io/component=agent --field-selector spec.nodeName=%s", e.in.Pod.Spec.NodeName)
}

// upper returns the verdict with a capital letter.
func upper(verdict planning.Severity) string {
	return strings.ToUpper(string(verdict[:1])) + string(verdict[1:])
}

// list joins words with commas, and returns none if there are none.
func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
