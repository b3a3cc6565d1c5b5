// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/test/builders"
)

func planSetups() map[string]setup {
	return map[string]setup{
		"manager down": {
			change: func(in *explanation.Input) {
				in.Lease.Spec.RenewTime = &metav1.MicroTime{Time: now().Add(-10 * time.Minute)}
			},
			conclusion: "Problem: Manager: no manager has led for 10m: plans and marks do not change",
			next:       "kubectl -n seamark-system get pods -l app.kubernetes.io/component=manager", evidence: []string{"the last leader was manager-1"},
		},
		"manager never ran": {
			change:     func(in *explanation.Input) { in.Lease = nil },
			conclusion: "Problem: Manager: no manager has run: namespace seamark-system has no lease of managers",
			next:       "kubectl -n seamark-system get pods -l app.kubernetes.io/component=manager",
		},
		"plan missing": {
			change: func(in *explanation.Input) {
				in.Plan = nil
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: node node-1 has no NodePodProbe", next: managerLogs,
		},
		"pod not in the plan": {
			change: func(in *explanation.Input) {
				in.Plan.Spec.PodProbes = nil
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: the node's plan does not have the probe", next: managerLogs,
		},
		"plan outdated": {
			change: func(in *explanation.Input) {
				in.Markers[0].Spec.Probes[0].Probe.Exec.Command = []string{"/other"}
			},
			conclusion: "Problem: Plan of node node-1: the node's plan has an earlier version of the pod's probes", next: managerLogs,
			evidence: []string{"it has an earlier version of probe worker#busy"},
		},
		"manager with messageUpdates Immediate": {
			change: func(in *explanation.Input) {
				in.Plan.Spec.PodProbes[0].Probes[0].MessageUpdates = v1alpha1.MessageUpdatesImmediate
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
		},
		"no address": {
			change: func(in *explanation.Input) {
				unreported(in)
				in.Pod.Status.PodIP, in.Pod.Status.ContainerStatuses = "", nil
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				runs(in, httpProbe("http"))
			},
			conclusion: "Problem: Plan of node node-1: pod has a network probe and no IP address, so it is not in the node's plan yet", next: describePod,
		},
		"agent behind": {
			change: func(in *explanation.Input) {
				in.Plan.Generation = 5
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: the node's agent runs generation 4 of the plan, which has generation 5 now", next: agentLogs,
		},
		"agent behind because of other pods": {
			change: func(in *explanation.Input) {
				in.Plan.Generation = 5
				in.Plan.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "seamark-manager", Time: new(ago(3 * time.Second))}}
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
			evidence:   []string{"info Plan of node node-1: the node's agent runs generation 4 of the plan, which has generation 5 now"},
		},
		"agent missing": {
			change: func(in *explanation.Input) {
				in.Agent, in.Plan.Status = nil, v1alpha1.NodePodProbeStatus{}
				unreported(in)
			},
			conclusion: "Problem: Agent of node node-1: the node has no agent: check the nodeSelector and the tolerations of the DaemonSet",
			next:       "kubectl -n seamark-system describe daemonset -l app.kubernetes.io/component=agent",
			evidence:   []string{"no agent has reported that it runs the node's plan"},
		},
		"agent not ready": {
			change: func(in *explanation.Input) {
				in.Agent.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady"}
				in.Plan.Generation = 5
				unreported(in)
			},
			conclusion: "Problem: Agent of node node-1: seamark-agent-x is not ready", next: agentLogs,
			evidence: []string{"condition Ready is False (ContainersNotReady)"},
		},
		"agent never started": {
			change: func(in *explanation.Input) {
				in.Agent.Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
					Name: "agent", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
				}}}
				unreported(in)
			},
			conclusion: "Problem: Agent of node node-1: seamark-agent-x is not ready", next: "kubectl -n seamark-system describe pod seamark-agent-x",
			evidence: []string{"container agent waits: ImagePullBackOff"},
		},
	}
}

func reportSetups() map[string]setup {
	wait := func(in *explanation.Input, reason, message string) {
		unreported(in)
		in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
	started := func(in *explanation.Input, since time.Duration) {
		unreported(in)
		in.Pod.Status.ContainerStatuses[0].State.Running.StartedAt = ago(since)
	}
	return map[string]setup{
		"container waiting for image": {
			change:     func(in *explanation.Input) { wait(in, "ImagePullBackOff", "no such image") },
			conclusion: `Problem: Report of worker#busy: container "main" has not started: ImagePullBackOff: no such image`, next: describePod,
		},
		"stale": {
			change: func(in *explanation.Input) {
				in.Markers[0].Spec.Probes[0].StaleAfterSeconds = new(int32(30))
				in.Outage = staleness.Outage{Cause: staleness.NodeNotReady, Since: ago(time.Minute).Time, Length: time.Minute}
			},
			conclusion: "Problem: Report of worker#busy: Unknown for 30s: The node or its agent has not been ready for 30s.",
			next:       "kubectl describe node node-1", evidence: []string{"the state is stale: the node has not been ready for 60s"},
		},
		"claim lost": {
			change: func(in *explanation.Input) {
				runs(in, builders.Probe("busy").Label(v1alpha1.ProbeSucceeded, "busy", "true").Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{}))
				unmark(in)
				report(in, v1alpha1.ProbeSucceeded, "")
			},
			conclusion: "Marked: worker#busy is Unknown, and this state sets no marks", next: "kubectl -n ns get pods -l exclusive.seamark.dev/c0edc22f0c=",
			evidence: []string{"the state counts as Unknown: another pod has the exclusive marks, or they are being moved"},
		},
		"threshold pending": {
			change:     func(in *explanation.Input) { started(in, 20*time.Second) },
			conclusion: "Waiting: Report of worker#busy: no threshold has been reached yet", next: follow,
			evidence: []string{"the first state takes 1 successes or 3 failures in a row, one run every 10s"},
		},
		"no report yet": {
			change:     func(in *explanation.Input) { started(in, 10*time.Minute) },
			conclusion: "Problem: Report of worker#busy: no state has been reported, although one is due", next: agentLogs,
			evidence: []string{"it was due 9m29s ago"},
		},
		"state of an earlier marker": {
			change: func(in *explanation.Input) {
				in.Slices[0].Pods[0].Probes[0].Plan = "00000000"
				unmark(in)
			},
			conclusion: "Problem: Report of worker#busy: the reported state is that of an earlier marker with the same name", next: agentLogs,
		},
		"state Unknown": {
			change: func(in *explanation.Input) {
				failed(in, "job 7")
				in.Slices[0].Pods[0].Probes[0].State, in.Pod.Status.Conditions[1].Status = v1alpha1.ProbeUnknown, "Unknown"
			},
			conclusion: "Waiting: Report of worker#busy: Unknown for 5m: job 7", next: follow,
			evidence: []string{"the container is new and has no result yet"},
		},
		"probe cannot be run": {
			change: func(in *explanation.Input) {
				in.Slices[0].Pods[0].Errors = []v1alpha1.ContainerProbeError{{
					Name: "worker#busy", Reason: v1alpha1.ProbeCannotRun, Message: "stat /probe: no such file",
				}}
			},
			conclusion: `Problem: Report of worker#busy: cannot be run: stat /probe: no such file`,
			next:       "kubectl -n ns get podprobemarker worker -o yaml",
		},
		"failing probe": {
			change:     func(in *explanation.Input) { failed(in, "cat: no file\n") },
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)", next: run,
			evidence: []string{"info Report of worker#busy: Failed for 5m: cat: no file\n"},
		},
		"crashing container": {
			change: func(in *explanation.Input) {
				failed(in, "the container has ended")
				in.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
				last := &in.Pod.Status.ContainerStatuses[0].LastTerminationState
				last.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 1, Reason: "Error"}
			},
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)",
			next:       "kubectl -n ns logs worker-0 -c main --tail=50 --previous",
		},
		"container that cannot start": {
			change: func(in *explanation.Input) {
				failed(in, "the container has ended")
				in.Pod.Status.ContainerStatuses[0].State = corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 128, Reason: "StartError"},
				}
			},
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)", next: describePod,
		},
		"exec timeout": {
			change:     func(in *explanation.Input) { failed(in, "timed out after 1s") },
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)", next: run,
			evidence: []string{"timeoutSeconds is 1: raise it, or make the probe cheaper"},
		},
		"failing network probe": {
			change: func(in *explanation.Input) {
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				runs(in, httpProbe("http"))
				failed(in, "connection refused")
			},
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)",
			next:       "kubectl get --raw /api/v1/namespaces/ns/pods/worker-0:80/proxy/",
		},
	}
}

func markSetups() map[string]setup {
	return map[string]setup{
		"mark owned by another probe": {
			change: func(in *explanation.Input) {
				second := marker("zoo", builders.Probe("late").Label(v1alpha1.ProbeSucceeded, "busy", "maybe"))
				in.Markers = append(in.Markers, second)
				replan(in)
				report(in, v1alpha1.ProbeSucceeded, "job 7")
			},
			conclusion: `Problem: Marks of zoo#late: label "busy" is set by probe "busy" of marker "worker"`,
			next:       "kubectl -n ns get podprobemarker worker -o yaml",
		},
		"mark removed by other writer": {
			change: func(in *explanation.Input) {
				delete(in.Pod.Labels, "busy")
				in.Pod.ManagedFields[0].FieldsV1 = ownsCondition()
				changed(in, `{}`)
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them",
			next:       managerLogs,
			evidence:   []string{"label busy should be true, and is missing", "the last other client that changed the pod is kubectl-label, 60s ago"},
		},
		"mark changed by other writer": {
			change: func(in *explanation.Input) {
				in.Pod.Labels["busy"] = "no"
				in.Pod.ManagedFields[0].FieldsV1 = ownsCondition()
				changed(in, `{"f:metadata":{"f:labels":{"f:busy":{}}}}`)
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them",
			next:       managerLogs, evidence: []string{"label busy should be true, and is no (set by kubectl-label, 60s ago)"},
		},
		"mark refused": {
			change: func(in *explanation.Input) {
				unmark(in)
				in.Markers[0].Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionMarksApplied, Status: "False", Reason: "WriteRefused",
					Message: `Probe "busy": the API server refuses its marks (pods: 1, such as worker-0): denied by policy.`,
				}}
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: condition example.com/busy, label busy: " +
				`probe "busy": the API server refuses its marks (pods: 1, such as worker-0): denied by policy.`,
			next: describe,
		},
		"mark not written yet": {
			change: func(in *explanation.Input) {
				unmark(in)
				in.Slices[0].Pods[0].Probes[0].LastTransitionTime = ago(2 * time.Second)
			},
			conclusion: "Waiting: Marks of worker#busy: the pod does not have the marks of the state: condition example.com/busy, label busy: " +
				"the manager has not written them",
			next: follow,
		},
		"marks left over": {
			change: func(in *explanation.Input) {
				runs(in, builders.Probe("other").Label(v1alpha1.ProbeSucceeded, "idle", "true"))
				report(in, v1alpha1.ProbeFailed, "")
			},
			conclusion: "Problem: Other marks: the pod has marks that no probe requires: the manager has not removed them", next: managerLogs,
			evidence: []string{"condition example.com/busy=True\n  label busy=true"},
		},
		"label of another client": {
			change: func(in *explanation.Input) {
				in.Pod.Labels["idle"] = "true"
				changed(in, `{"f:metadata":{"f:labels":{"f:idle":{}}}}`)
				in.Markers = append(in.Markers, builders.Marker("ns", "zoo").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "idle", "true")).Build())
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
			evidence:   []string{"info Keys of others: these are not marks", "  label idle=true (set by kubectl-label, 60s ago)"},
		},
		"policy for other state only": {
			change: func(in *explanation.Input) {
				runs(in, builders.Probe("busy").Label(v1alpha1.ProbeSucceeded, "busy", "true"))
				unmark(in)
				report(in, v1alpha1.ProbeFailed, "")
			},
			conclusion: "Marked: worker#busy is Failed, and this state sets no marks", next: run,
			evidence: []string{"the state Failed sets no marks: its markerPolicy has an entry for Succeeded only, and it has no podConditionType"},
		},
		"no policy and no condition": {
			change: func(in *explanation.Input) {
				runs(in, builders.Probe("busy"))
				unmark(in)
			},
			conclusion: "Problem: Marks of worker#busy: the probe declares no marks: it has neither a podConditionType nor a markerPolicy", next: edit,
		},
	}
}

func accessSetups() map[string]setup {
	const canI = "kubectl auth can-i get nodepodprobes.apps.kruise.io"
	forbidden := permission.Missing{Resource: permission.Plans, Verb: "get"}
	return map[string]setup{
		"CRD missing": {
			change: func(in *explanation.Input) {
				in.Unread[permission.Markers] = permission.Missing{Resource: permission.Markers}
				in.Markers = nil
			},
			conclusion: "Problem: Markers: the markers of namespace ns cannot be read, because Seamark is not installed in the cluster", next: "seamark check",
		},
		"no permission for markers": {
			change:     func(in *explanation.Input) { in.Unread[permission.Markers], in.Markers = forbidden, nil },
			conclusion: "Unknown: this could not be read: Markers", next: canI,
		},
		"only namespaced permissions": {
			change: func(in *explanation.Input) {
				for _, s := range []permission.Resource{permission.Nodes, permission.Plans, permission.Reports, permission.Pods, explanation.Leases} {
					in.Unread[s] = forbidden
				}
				in.Node, in.Plan, in.Slices, in.Agent, in.Lease = nil, nil, nil, nil, nil
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true). " +
				"Not checked: Node node-1, Manager, Plan of node node-1, Agent of node node-1, Report",
			evidence: []string{"ok Report of worker#busy: Succeeded for 5m: job 7 (from the condition of the pod)"},
		},
		"only namespaced permissions, and a wrong label": {
			change: func(in *explanation.Input) {
				in.Unread[permission.Plans], in.Unread[permission.Reports] = forbidden, forbidden
				in.Plan, in.Slices = nil, nil
				in.Pod.Labels["busy"] = "no"
				in.Pod.ManagedFields[0].FieldsV1 = ownsCondition()
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them", next: managerLogs,
		},
		"only namespaced permissions, and no marks": {
			change: func(in *explanation.Input) {
				unreported(in)
				in.Plan = nil
				in.Unread[permission.Plans], in.Unread[permission.Reports] = forbidden, forbidden
				in.Events = []corev1.Event{{
					InvolvedObject: corev1.ObjectReference{UID: in.Pod.UID}, Reason: "KruiseProbeError", Message: "worker#busy: no such file",
					LastTimestamp: ago(time.Minute),
				}}
			},
			conclusion: "Unknown: this could not be read: Plan of node node-1, Report, Report of worker#busy, Marks of worker#busy", next: canI,
			evidence: []string{"event KruiseProbeError 60s ago: worker#busy: no such file"},
		},
		"another marker is not shown": {
			change: func(in *explanation.Input) {
				in.Markers = append(in.Markers, marker("zoo", builders.Probe("p").Container("none").Condition("x/y")))
				in.Marker = "worker"
				replan(in)
				report(in, v1alpha1.ProbeSucceeded, "job 7")
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
		},
	}
}
