// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// pod adds the step about the pod itself. It returns false if there is none.
func (e *explainer) pod() bool {
	const title = "Pod"
	pod := e.in.Pod
	if pod == nil {
		e.problem(title, fmt.Sprintf("namespace %s has no pod %s", e.in.Namespace, e.in.Name), e.kubectl("get pods"))
		return false
	}
	if owner := controllerOf(pod); owner != nil && owner.Kind == imagepull.Kind().Kind {
		e.problem(
			title, fmt.Sprintf("it pulls an image for the %s %s: no container of it ever runs, so it is not probed", owner.Kind, owner.Name), e.ofOwner(owner),
		)
		return false
	}
	if e.waiting = diagnosis.OfPod(pod); e.waiting == nil {
		e.add(Step{Title: title, Verdict: OK, Text: "it is initialized and bound to node " + pod.Spec.NodeName})
		return true
	}
	var evidence []string
	switch e.waiting.Reason {
	case diagnosis.PodNotBound:
		evidence = append(conditionLine(pod, corev1.PodScheduled), "a pod is probed after it is scheduled")
	case diagnosis.PodNotInitialized:
		evidence = append(conditionLine(pod, corev1.PodInitialized), "a pod is probed after its init containers have completed")
	default:
		if pod.DeletionTimestamp != nil {
			evidence = append(evidence, fmt.Sprintf("it has been terminating for %s", e.age(pod.DeletionTimestamp.Time)))
		}
		evidence = append(evidence, "such pods are not probed, and keep the marks that they have")
	}
	e.problem(title, e.waiting.String(), e.kubectl("describe pod %s", pod.Name), evidence...)
	return true
}

// controllerOf returns the set or the job of apps.kruise.io that controls the pod, nil if none does.
func controllerOf(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return nil
	}
	return owner
}

// ofOwner returns the command that explains a set or a job.
func (e *explainer) ofOwner(owner *metav1.OwnerReference) string {
	return e.explaining(strings.ToLower(owner.Kind) + "/" + owner.Name)
}

// controller adds the step about the set or the job of the pod. It prevents no mark.
func (e *explainer) controller() {
	if owner := controllerOf(e.in.Pod); owner != nil {
		what := fmt.Sprintf("a pod of the %s %s", owner.Kind, owner.Name)
		if node := nodefit.Target(e.in.Pod); node != "" && e.in.Pod.Spec.NodeName == "" {
			what += ", for node " + node
		}
		s := Step{Title: "Workload", Verdict: Info, Text: what, Evidence: []string{"what it waits for: " + e.ofOwner(owner)}}
		if why := e.waits(); why != "" {
			e.held = fmt.Sprintf("%s %s: %s", owner.Kind, owner.Name, why)
			s.Text, s.Next = what+": "+why, inspect(e.in.Namespace, e.in.Pod)
		}
		e.add(s)
	}
}

// waits says what the set of the pod waits for in the pod: a hook that holds it, readiness, or its update. It is empty if nothing is
// waited for.
func (e *explainer) waits() string {
	pod := e.in.Pod
	set, known := setview.Of(e.in.Set)
	if !known {
		if state := pub.LifecycleStateType(pod.Labels[pub.LifecycleStateKey]); state != "" && state != pub.LifecycleStateNormal {
			return fmt.Sprintf("it is in the state %s, and the set cannot be read, so the hook that holds it is not known", text.Line(string(state)))
		}
		return ""
	}
	set.Rules.Now = e.in.Now
	if wait := rollout.WaitOf(pod, set.Rules); wait.Why != "" {
		return wait.Why
	}
	if progress := &set.Progress; progress.Observed >= progress.Generation && progress.Revision != "" && !revision.Is(pod, progress.Revision) {
		return outdated(&set)
	}
	return ""
}

// outdated says why a pod of the set does not have the update revision. Which pods a partition keeps is known when the rollout is
// complete.
func outdated(set *setview.View) string {
	p, state := &set.Progress, set.State()
	limited, complete := p.Target < p.Desired, state.Phase == rollout.Complete
	switch {
	case p.OnDelete:
		return "it gets the update revision when it is deleted, because spec.updateStrategy.type is OnDelete"
	case limited && complete:
		return fmt.Sprintf("%s keeps it at an earlier revision: %d of %d pods are updated", set.Limit, p.Updated, p.Desired)
	case limited:
		return fmt.Sprintf("it does not have the update revision: %s (%s permits %d of %d)", state.Message, set.Limit, p.Target, p.Desired)
	case complete:
		return "it does not have the update revision: " + state.Message
	}
	return "it does not have the update revision yet: " + state.Message
}

// conditionLine returns a line about a condition of the pod.
func conditionLine(pod *corev1.Pod, conditionType corev1.PodConditionType) []string {
	for _, c := range pod.Status.Conditions {
		if c.Type == conditionType {
			line := fmt.Sprintf("condition %s is %s", c.Type, c.Status)
			if c.Reason != "" {
				line += " (" + c.Reason + ")"
			}
			if c.Message != "" {
				line += ": " + c.Message
			}
			return []string{line}
		}
	}
	return []string{fmt.Sprintf("the pod has no condition %s", conditionType)}
}

// kept adds the step about the marks of a pod that is not probed.
func (e *explainer) kept() {
	if e.waiting.Reason != diagnosis.PodEnding {
		e.leftovers()
		return
	}
	if lines := e.lines(e.owned, e.owned.Keys()); len(lines) > 0 {
		e.add(Step{Title: "Marks", Verdict: Info, Text: "the pod keeps its last marks", Evidence: lines})
	}
}

// look computes what the manager computes: the plan of the pod and its marks.
func (e *explainer) look() {
	kind := podview.NodeKindOf(e.in.Node)
	e.options = podview.Options{
		Defaults:   plan.KubernetesDefaults(),
		Serverless: kind == podview.VirtualNode && serverless.AnnotationsOf(e.in.Pod) != serverless.Annotations{},
	}
	// The manager's own defaults are known from its plan only.
	if entry := diagnosis.Entry(e.in.Plan, e.in.Pod); entry != nil && !e.options.Serverless {
		e.options.Defaults = defaultsIn(entry, plan.Pod(e.in.Pod, e.compiled, e.options.Defaults).Probes)
	}
	report := mark.NodeReport{Plan: e.in.Plan, Slices: e.in.Slices, Outage: e.in.Outage}
	e.view = podview.New(e.in.Pod, e.compiled, kind, report, e.options)
	if e.waiting != nil {
		e.view.Plan = plan.Selected(e.in.Pod, e.compiled, e.options.Defaults)
	}
	_, noPlan := e.in.Unread[permission.Plans]
	_, noReports := e.in.Unread[permission.Reports]
	if e.guessed = noReports && !e.options.Serverless && !mark.InStatus(e.in.Plan); e.guessed {
		e.view.Report = mark.Provided(e.in.Pod, e.view.Plan.Probes)
		e.view.Report.Provider = false
	}
	e.view = e.view.WithTickets(e.compiled)
	e.findings = diagnosis.New(diagnosis.Input{
		Pod: e.view, Options: e.options, Node: report, Markers: e.in.Markers, Want: e.want(),
		PlanUnread: noPlan, ReportsUnread: noReports, Statuses: true, Now: e.in.Now,
	})
	owned, err := mark.Owned(e.in.Pod)
	if err != nil {
		e.add(Step{Title: "Marks", Verdict: Unknown, Text: err.Error()})
		owned = make(mark.Marks)
	}
	e.owned, e.desired = owned, e.view.Desired(owned)
}

// probes adds a step for each probe of the matching markers.
func (e *explainer) probes() {
	for _, p := range e.view.Plan.Probes {
		if e.shown(p.ID.Marker) {
			e.add(Step{Title: "Probe " + p.ID.String(), Verdict: OK, Text: describeProbe(p)})
		}
	}
	for _, p := range e.view.Plan.Unplanned(e.in.Pod) {
		if e.shown(p.ID.Marker) {
			e.problem("Probe "+p.ID.String(), diagnosis.OfProblem(p).String(), e.remedy(p), e.about(p)...)
		}
	}
}

// remedy returns the command that starts to solve the problem.
func (e *explainer) remedy(p plan.Problem) string {
	if p.Reason == plan.TooManyMarkers {
		return e.kubectl("get podprobemarkers")
	}
	return e.kubectl("edit podprobemarker %s", p.ID.Marker)
}

// describeProbe says what a probe does and when.
func describeProbe(p plan.PlannedProbe) string {
	probe := &p.Plan.Probe
	period := thresholds.PlannedPolicy(probe).Period
	var what string
	switch {
	case probe.Exec != nil:
		what = "exec " + text.Shell(probe.Exec.Command)
	case probe.HTTPGet != nil:
		what = fmt.Sprintf("httpGet port %s, path %s", probe.HTTPGet.Port.String(), probe.HTTPGet.Path)
	case probe.TCPSocket != nil:
		what = "tcpSocket port " + probe.TCPSocket.Port.String()
	case probe.GRPC != nil:
		what = fmt.Sprintf("grpc port %d", probe.GRPC.Port)
	}
	return fmt.Sprintf("container %s, %s, every %s", p.Plan.ContainerName, what, period)
}

// about returns what the pod has instead of what a probe needs.
func (e *explainer) about(p plan.Problem) []string {
	pod := e.in.Pod
	switch p.Reason {
	case plan.ContainerNotFound:
		var names []string
		var lines []string
		for _, c := range pod.Spec.Containers {
			names = append(names, c.Name)
		}
		for _, c := range pod.Spec.InitContainers {
			if plan.Restartable(&c) {
				names = append(names, c.Name)
			} else if c.Name == p.Container {
				lines = append(lines, fmt.Sprintf("%s is an init container that is not restartable: it does not run when the pod is probed", c.Name))
			}
		}
		for _, c := range pod.Spec.EphemeralContainers {
			if c.Name == p.Container {
				lines = append(lines, fmt.Sprintf("%s is an ephemeral container, which is not probed", c.Name))
			}
		}
		return append(lines, "containers of the pod: "+list(names)+similar(p.Container, names))
	case plan.PortNotFound:
		var names []string
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			for _, port := range c.Ports {
				if c.Name == p.Container && port.Name != "" {
					names = append(names, port.Name)
				}
			}
		}
		return []string{fmt.Sprintf("named ports of container %s: %s%s", p.Container, list(names), similar(p.Port, names))}
	default:
		return nil
	}
}

// node adds a step if no agent can run on the node. It returns false if nothing probes the pod.
func (e *explainer) node() bool {
	name := e.in.Pod.Spec.NodeName
	title := "Node " + name
	if e.unread(permission.Nodes, title, "the node") {
		return true
	}
	switch {
	case e.in.Node == nil:
		e.problem(title, "the node does not exist", "kubectl get nodes")
		return false
	case e.options.Serverless:
		e.add(Step{Title: title, Verdict: OK, Text: "it is a virtual node: its provider probes the pod"})
	case serverless.IsVirtual(e.in.Node.Labels):
		e.problem(title, "it is a virtual node, which has no agent, and the pod has no annotations that pass probes to the provider: "+
			"support for pods on virtual nodes is not enabled", "kubectl get mutatingwebhookconfigurations")
		return false
	case !serverless.HasAgent(e.in.Node.Labels):
		e.problem(title, "no agent can run on such a node, so its pods are not probed", fmt.Sprintf("kubectl get node %s --show-labels", name))
		return false
	}
	return true
}

// provider adds the step about what is passed to the provider of a virtual node.
func (e *explainer) provider() {
	const title = "Annotations"
	want, err := serverless.Encode(e.view.Plan.Probes)
	switch {
	case err != nil:
		e.problem(title, err.Error(), e.managerLogs())
	case want != serverless.AnnotationsOf(e.in.Pod):
		e.late(e.findings.Changed(), title, "they do not have the probes of the markers: the manager has not updated them", e.managerLogs())
	default:
		e.add(Step{Title: title, Verdict: OK, Text: "they pass the probes to the provider"})
	}
}
