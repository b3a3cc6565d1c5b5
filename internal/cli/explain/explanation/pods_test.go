// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/expect"
)

// podsOf returns what is read about an object and the pod of the input, which the object selects.
func podsOf(in *explanation.Input, object metav1.Object, kind, resource string) explanation.PodsInput {
	states := probestatus.NewInput(podview.Options{Defaults: plan.KubernetesDefaults()})
	states.Pods, states.Markers, states.Now, states.Statuses = []*corev1.Pod{in.Pod}, in.Markers, now(), true
	states.Nodes["node-1"] = in.Node
	if in.Plan != nil {
		states.Plans["node-1"] = in.Plan
	}
	states.Reports = map[string][]*seamarkv1alpha1.ProbeReport{"node-1": in.Slices}
	_, states.ReportsUnread = in.Unread[permission.Reports]
	return explanation.PodsInput{
		Kind: kind, Resource: resource, Object: object, Pods: states.Pods, Markers: in.Markers, States: probestatus.List(states), Nodes: states.Nodes,
		Agents: map[string]*corev1.Pod{"node-1": in.Agent}, Lease: in.Lease, Unread: in.Unread, SystemNamespace: in.SystemNamespace, Now: now(),
	}
}

const (
	settled       = "Settled: nothing is wrong, and nothing is waited for"
	managerLeads  = "ok Manager: manager-1 leads"
	markerMatches = "ok Marker worker: it matches: app=worker"
	agentsReady   = "ok Nodes: 1 of 1 have an agent that is ready: node-1"
	getMarker     = "kubectl -n ns get podprobemarker worker -o yaml"
)

// podsCase is a change of a healthy input, and the answer about the marker or the Deployment worker.
type podsCase struct {
	change     func(*explanation.Input)
	edit       func(*explanation.PodsInput)
	want       []string
	conclusion string
	next       string
}

func markerCases() map[string]podsCase {
	const pods = "ok Pods: 1 of 1 that match can be probed"
	return map[string]podsCase{
		"as it should be": {
			want:       []string{markerMatches, pods, managerLeads, agentsReady, "ok Probe worker#busy: the states of 1 pod: 1 Succeeded"},
			conclusion: settled,
		},
		"no pod matches": {
			change: func(in *explanation.Input) { in.Markers[0].Spec.Selector.MatchLabels["app"] = "wroker" },
			edit:   func(in *explanation.PodsInput) { in.Near, in.Pods, in.States = in.Pods, nil, probestatus.States{} },
			want: []string{
				"problem Pods: no pod of namespace ns matches the selector app=wroker", "  the closest is pod worker-0:",
				"  it requires app=wroker, and the pod has app=worker, which is similar",
				"  the selector of a marker is immutable: correct the labels in the pod template, or delete the marker and create another one",
			},
			conclusion: "Problem: Pods: no pod of namespace ns matches the selector app=wroker", next: "kubectl -n ns get pod worker-0 --show-labels",
		},
		"no pod at all": {
			edit:       func(in *explanation.PodsInput) { in.Pods, in.States = nil, probestatus.States{} },
			want:       []string{"problem Pods: no pod of namespace ns matches the selector app=worker"},
			conclusion: "Problem: Pods: no pod of namespace ns matches the selector app=worker", next: "kubectl -n ns get pods --show-labels",
		},
		"a container that no pod has": {
			change: func(in *explanation.Input) {
				runs(in, busy().Container("mainn"))
				unreported(in)
				in.Markers[0].Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionProbesResolved, Status: metav1.ConditionFalse, Reason: "ContainerNotFound", Message: "not found",
					LastTransitionTime: ago(60e9),
				}, {Type: v1alpha1.ConditionPodsMatched, Status: metav1.ConditionFalse, Reason: "NoPods"}}
			},
			want: []string{
				markerMatches, `  its condition ProbesResolved is False (ContainerNotFound): not found`, pods, managerLeads, agentsReady,
				`problem Probe worker#busy: the states of 1 pod: 1 Pending; container "mainn" not found`, `  container "mainn" not found: worker-0`,
				"problem Condition ProbesResolved: False (ContainerNotFound) for 60s: not found",
			},
			conclusion: `Problem: Probe worker#busy: the states of 1 pod: 1 Pending; container "mainn" not found`, next: getMarker,
		},
		"no agent": {
			change: func(in *explanation.Input) {
				in.Agent, in.Plan.Status = nil, v1alpha1.NodePodProbeStatus{}
				unreported(in)
			},
			want: []string{
				markerMatches, pods, managerLeads, "problem Nodes: 1 of 1 have no agent that is ready", "  node node-1: it has no agent",
				"problem Probe worker#busy: the states of 1 pod: 1 Pending; no agent has reported that it runs the node's plan",
				"  no agent has reported that it runs the node's plan: worker-0",
			},
			conclusion: "Problem: Nodes: 1 of 1 have no agent that is ready",
			next:       "kubectl -n seamark-system describe daemonset.apps -l app.kubernetes.io/component=agent",
		},
		"a pod that fails": {
			change: func(in *explanation.Input) { failed(in, "cat: no file\n") },
			want: []string{
				markerMatches, pods, managerLeads, agentsReady, "ok Probe worker#busy: the states of 1 pod: 1 Failed", "  Failed, cat: no file: worker-0",
			},
			conclusion: settled,
		},
		"a pod that does not start": {
			change: func(in *explanation.Input) {
				unreported(in)
				in.Pod.Spec.NodeName, in.Pod.Status.ContainerStatuses = "", nil
			},
			want: []string{
				markerMatches, "waiting Pods: 0 of 1 that match can be probed", "  pod is not bound to a node: worker-0", managerLeads,
				"ok Probe worker#busy: the states of 1 pod: 1 Pending", "  pod is not bound to a node: worker-0",
			},
			conclusion: "Waiting: Pods: 0 of 1 that match can be probed", next: describePod,
		},
		"no result yet": {
			change: func(in *explanation.Input) {
				unreported(in)
				in.Pod.Status.ContainerStatuses[0].State.Running.StartedAt = ago(20e9)
			},
			want:       []string{markerMatches, pods, managerLeads, agentsReady, "waiting Probe worker#busy: the states of 1 pod: 1 Pending"},
			conclusion: "Waiting: Probe worker#busy: the states of 1 pod: 1 Pending", next: "seamark get -n ns -m worker --watch",
		},
	}
}

func TestMarkers(t *testing.T) {
	for name, test := range markerCases() {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.check(t, &in, func() explanation.PodsInput {
				return podsOf(&in, in.Markers[0], "PodProbeMarker", "podprobemarker.apps.kruise.io/worker")
			})
		})
	}
}

// check compares the answer.
func (c podsCase) check(t *testing.T, in *explanation.Input, read func() explanation.PodsInput) {
	t.Helper()
	if c.change != nil {
		c.change(in)
	}
	given := read()
	if c.edit != nil {
		c.edit(&given)
	}
	got := explanation.Pods(given)
	expect.Equal(t, "steps", c.want, lines(got.Steps))
	expect.Equal(t, "conclusion", c.conclusion, got.Conclusion)
	expect.Equal(t, "next command", c.next, got.Next)
	expect.Equal(t, "settled", c.conclusion == settled, got.Settled)
}

// TestDeployments explains the pods of a Deployment by the markers that match them.
func TestDeployments(t *testing.T) {
	const (
		available = "ok Pods: 1 of 1 are available"
		hostile   = "node node-1, pod worker-0: container a; b waits: CrashLoopBackOff"
		crashes   = "node node-1, pod worker-0: container main waits: CrashLoopBackOff"
		nearest   = "no marker matches the pod, and this one is the closest: it requires app=wroker, and the pod has app=worker, which is similar"
	)
	ready := func(in *explanation.Input) {
		in.Pod.Status.Conditions = append(in.Pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	for name, test := range map[string]podsCase{
		"as it should be": {
			change:     ready,
			want:       []string{available, markerMatches, managerLeads, agentsReady, "ok Probe worker#busy: the states of 1 pod: 1 Succeeded"},
			conclusion: settled,
		},
		"no marker matches": {
			change: func(in *explanation.Input) {
				in.Markers[0].Spec.Selector.MatchLabels["app"] = "wroker"
				unmark(in)
				ready(in)
			},
			edit: func(in *explanation.PodsInput) { in.States = probestatus.States{} },
			want: []string{
				available, "problem Marker worker: " + nearest,
				"  the selector of a marker is immutable: correct the labels in the pod template, or delete the marker and create another one",
			},
			conclusion: "Problem: Marker worker: " + nearest, next: getMarker,
		},
		"a container crashes": {
			change: func(in *explanation.Input) {
				failed(in, "the container has ended")
				waits("CrashLoopBackOff", "")(in.Pod)
				last := &in.Pod.Status.ContainerStatuses[0].LastTerminationState
				last.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 1}
			},
			want: []string{
				"problem Pods: 0 of 1 are available, and " + crashes, "  " + crashes, markerMatches, managerLeads, agentsReady,
				"ok Probe worker#busy: the states of 1 pod: 1 Failed", "  Failed, the container has ended: worker-0",
			},
			conclusion: "Problem: Pods: 0 of 1 are available, and " + crashes, next: "kubectl -n ns logs worker-0 -c main --tail=50 --previous",
		},
		"a container whose name a shell would run": {
			change: func(in *explanation.Input) {
				failed(in, "the container has ended")
				waits("CrashLoopBackOff", "")(in.Pod)
				status := &in.Pod.Status.ContainerStatuses[0]
				status.Name = "a; b"
				status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 1}
			},
			want: []string{
				"problem Pods: 0 of 1 are available, and " + hostile, "  " + hostile, markerMatches, managerLeads, agentsReady,
				"ok Probe worker#busy: the states of 1 pod: 1 Failed", "  Failed, the container has ended: worker-0",
			},
			conclusion: "Problem: Pods: 0 of 1 are available, and " + hostile, next: "kubectl -n ns logs worker-0 -c 'a; b' --tail=50 --previous",
		},
		"no pods": {
			edit:       func(in *explanation.PodsInput) { in.Pods, in.States = nil, probestatus.States{} },
			want:       []string{"problem Pods: it has no pods"},
			conclusion: "Problem: Pods: it has no pods", next: "kubectl -n ns describe deployment.apps/worker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			test.check(t, &in, func() explanation.PodsInput {
				return podsOf(&in, &appsv1.Deployment{ObjectMeta: metaOf("worker")}, "Deployment", "deployment.apps/worker")
			})
		})
	}
}
