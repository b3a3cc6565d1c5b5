// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explanation"
	"github.com/seamark-dev/seamark/test/builders"
)

func planSetups() map[string]setup {
	return map[string]setup{
		"manager down": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Lease.Spec.RenewTime = &metav1.MicroTime{Time: now().Add(-10 * time.Minute)}
			},
			conclusion: "Problem: Manager: no manager has led for 10m: plans and marks do not change",
			next:       "kubectl -n seamark-system get pods -l app.kubernetes.io/component=manager", evidence: []string{"the last leader was manager-1"},
		},
		"manager never ran": {
			change:     func(_ *testing.T, in *explain.Input) { in.Lease = nil },
			conclusion: "Problem: Manager: no manager has run: namespace seamark-system has no lease of managers",
			next:       "kubectl -n seamark-system get pods -l app.kubernetes.io/component=manager",
		},
		"plan missing": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan = nil
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: node node-1 has no NodePodProbe", next: managerLogs,
		},
		"pod not in the plan": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Spec.PodProbes = nil
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: the node's plan does not have the probe", next: managerLogs,
		},
		"pod not in the plan yet": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Spec.PodProbes = nil
				in.Pod.CreationTimestamp = ago(3 * time.Second)
				unreported(in)
			},
			conclusion: "Waiting: Plan of node node-1: the node's plan does not have the probe", next: again,
		},
		"plan outdated": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Markers[0].Spec.Probes[0].Probe.Exec.Command = []string{"/other"}
			},
			conclusion: "Problem: Plan of node node-1: the node's plan has an earlier version of the pod's probes", next: managerLogs,
			evidence: []string{"it has an earlier version of probe worker#busy"},
		},
		"plan full": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Spec.PodProbes = nil
				in.Markers[0].Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionProbesResolved, Status: "False", Reason: "NodePlanFull", Message: "exceeds",
				}}
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: the node's plan has no room for the probe: the markers of the namespace exceed its share", next: describe,
		},
		"no address": {
			change: func(t *testing.T, in *explain.Input) {
				unreported(in)
				in.Pod.Status.PodIP, in.Pod.Status.ContainerStatuses = "", nil
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", httpProbe("http"))}
				replan(t, in)
			},
			conclusion: "Problem: Plan of node node-1: pod has a network probe and no IP address, so it is not in the node's plan yet", next: describePod,
		},
		"agent behind": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Generation = 5
				unreported(in)
			},
			conclusion: "Problem: Plan of node node-1: the node's agent runs generation 4 of the plan, which has generation 5 now", next: agentLogs,
		},
		"agent behind for a moment": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Generation = 5
				in.Plan.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "seamark-manager", Time: new(ago(3 * time.Second))}}
				unreported(in)
			},
			conclusion: "Waiting: Plan of node node-1: the node's agent runs generation 4 of the plan, which has generation 5 now", next: again,
		},
		"agent behind because of other pods": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Plan.Generation = 5
				in.Plan.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "seamark-manager", Time: new(ago(3 * time.Second))}}
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
			evidence:   []string{"info Plan of node node-1: the node's agent runs generation 4 of the plan, which has generation 5 now"},
		},
		"agent missing": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Agent, in.Plan.Status = nil, v1alpha1.NodePodProbeStatus{}
				unreported(in)
			},
			conclusion: "Problem: Agent of node node-1: the node has no agent: check the nodeSelector and the tolerations of the DaemonSet",
			next:       "kubectl -n seamark-system describe daemonset -l app.kubernetes.io/component=agent",
			evidence:   []string{"no agent has reported that it runs the node's plan"},
		},
		"agent not ready": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Agent.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: "False", Reason: "ContainersNotReady"}
				in.Plan.Generation = 5
				unreported(in)
			},
			conclusion: "Problem: Agent of node node-1: seamark-agent-x is not ready", next: agentLogs,
			evidence: []string{"condition Ready is False (ContainersNotReady)"},
		},
		"agent never started": {
			change: func(_ *testing.T, in *explain.Input) {
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
	wait := func(in *explain.Input, reason, message string) {
		unreported(in)
		in.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
	started := func(in *explain.Input, since time.Duration) {
		unreported(in)
		in.Pod.Status.ContainerStatuses[0].State.Running.StartedAt = ago(since)
	}
	return map[string]setup{
		"container waiting for image": {
			change:     func(_ *testing.T, in *explain.Input) { wait(in, "ImagePullBackOff", "no such image") },
			conclusion: `Problem: Report of worker#busy: container "main" has not started: ImagePullBackOff: no such image`, next: describePod,
		},
		"container never started": {
			change:     func(_ *testing.T, in *explain.Input) { wait(in, "ContainerCreating", "") },
			conclusion: `Problem: Report of worker#busy: container "main" has not started: ContainerCreating`, next: describePod,
		},
		"container starting": {
			change: func(_ *testing.T, in *explain.Input) {
				wait(in, "ContainerCreating", "")
				in.Pod.CreationTimestamp = ago(time.Minute)
			},
			conclusion: `Waiting: Report of worker#busy: container "main" has not started: ContainerCreating`, next: again,
		},
		"initial delay": {
			change: func(t *testing.T, in *explain.Input) {
				in.Markers[0].Spec.Probes[0].Probe.InitialDelaySeconds = 60
				replan(t, in)
				started(in, 20*time.Second)
			},
			conclusion: "Waiting: Report of worker#busy: no threshold has been reached yet", next: again,
			evidence: []string{"one run every 10s, 1m0s after the start"},
		},
		"threshold pending": {
			change:     func(_ *testing.T, in *explain.Input) { started(in, 20*time.Second) },
			conclusion: "Waiting: Report of worker#busy: no threshold has been reached yet", next: again,
			evidence: []string{"the first state takes 1 successes or 3 failures in a row, one run every 10s"},
		},
		"no report yet": {
			change:     func(_ *testing.T, in *explain.Input) { started(in, 10*time.Minute) },
			conclusion: "Problem: Report of worker#busy: no state has been reported, although one is due", next: agentLogs,
			evidence: []string{"it was due 9m29s ago"},
		},
		"state of an earlier marker": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Slices[0].Pods[0].Probes[0].Plan = "00000000"
				unmark(in)
			},
			conclusion: "Problem: Report of worker#busy: the reported state is that of an earlier marker with the same name", next: agentLogs,
		},
		"state Unknown": {
			change: func(_ *testing.T, in *explain.Input) {
				failed(in, "job 7")
				in.Slices[0].Pods[0].Probes[0].State, in.Pod.Status.Conditions[1].Status = v1alpha1.ProbeUnknown, "Unknown"
			},
			conclusion: "Waiting: Report of worker#busy: Unknown for 5m: job 7", next: again,
			evidence: []string{"the container is new and has no result yet"},
		},
		"probe cannot be run": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Slices[0].Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "worker#busy", Reason: v1alpha1.ProbeCannotRun, Message: "stat /probe: no such file"}}
			},
			conclusion: `Problem: Report of worker#busy: cannot be run: stat /probe: no such file`, next: run,
		},
		"probe waits for a slot": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Slices[0].Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "worker#busy", Reason: v1alpha1.ProbeWaitingForSlot, Message: "30s"}}
			},
			conclusion: `Problem: Report of worker#busy: waits for a slot of the node: too many probes of the pod, the namespace or the node are running: 30s`, next: agentLogs,
		},
		"failing probe": {
			change:     func(_ *testing.T, in *explain.Input) { failed(in, "cat: no file\n") },
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)", next: run,
			evidence: []string{"info Report of worker#busy: Failed for 5m: cat: no file\n"},
		},
		"exec timeout": {
			change:     func(_ *testing.T, in *explain.Input) { failed(in, "timed out after 1s") },
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)", next: run,
			evidence: []string{"timeoutSeconds is 1: raise it, or make the probe cheaper"},
		},
		"failing network probe": {
			change: func(t *testing.T, in *explain.Input) {
				in.Pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", httpProbe("http"))}
				replan(t, in)
				failed(in, "connection refused")
			},
			conclusion: "Marked: worker#busy is Failed (condition example.com/busy=False)",
			next:       "kubectl get --raw /api/v1/namespaces/ns/pods/worker-0:80/proxy/",
		},
	}
}

func markSetups() map[string]setup {
	otherLabel := func(in *explain.Input, manager string) {
		in.Pod.ManagedFields = append(in.Pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(ago(time.Minute)),
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:busy":{}}}}`),
		})
	}
	return map[string]setup{
		"mark owned by another probe": {
			change: func(t *testing.T, in *explain.Input) {
				second := marker("zoo", builders.Probe("late").Label(v1alpha1.ProbeSucceeded, "busy", "maybe"))
				in.Markers = append(in.Markers, second)
				replan(t, in)
				report(in, v1alpha1.ProbeSucceeded, "job 7")
			},
			conclusion: `Problem: Marks of zoo#late: label "busy" is set by probe "busy" of marker "worker"`,
			next:       "kubectl -n ns get podprobemarker worker -o yaml",
		},
		"mark removed by other writer": {
			change: func(_ *testing.T, in *explain.Input) {
				delete(in.Pod.Labels, "busy")
				in.Pod.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:status":` + ownsMarks[len(`{"f:metadata":{"f:labels":{"f:busy":{}}},"f:status":`):])
				in.Pod.ManagedFields = append(in.Pod.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate, Time: new(ago(time.Minute)),
				})
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them",
			next:       managerLogs,
			evidence:   []string{"label busy should be true, and is missing", "the last other client that changed the pod is kubectl-label, 60s ago"},
		},
		"mark changed by other writer": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Pod.Labels["busy"] = "no"
				in.Pod.ManagedFields = in.Pod.ManagedFields[:0]
				in.Pod.ManagedFields = append(in.Pod.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
					FieldsV1: metav1.NewFieldsV1(`{"f:status":` + ownsMarks[len(`{"f:metadata":{"f:labels":{"f:busy":{}}},"f:status":`):]),
				})
				otherLabel(in, "kubectl-label")
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them",
			next:       managerLogs, evidence: []string{"label busy should be true, and is no (set by kubectl-label, 60s ago)"},
		},
		"mark refused": {
			change: func(_ *testing.T, in *explain.Input) {
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
			change: func(_ *testing.T, in *explain.Input) {
				unmark(in)
				in.Slices[0].Pods[0].Probes[0].LastTransitionTime = ago(2 * time.Second)
			},
			conclusion: "Waiting: Marks of worker#busy: the pod does not have the marks of the state: condition example.com/busy, label busy: " +
				"the manager has not written them",
			next: again,
		},
		"marks left over": {
			change: func(t *testing.T, in *explain.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", builders.Probe("other").Label(v1alpha1.ProbeSucceeded, "idle", "true"))}
				replan(t, in)
				report(in, v1alpha1.ProbeFailed, "")
			},
			conclusion: "Problem: Other marks: the pod has marks that no probe requires: the manager has not removed them", next: managerLogs,
			evidence: []string{"condition example.com/busy=True\n  label busy=true"},
		},
		"label of another client": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Pod.Labels["idle"] = "true"
				in.Pod.ManagedFields = append(in.Pod.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate, Time: new(ago(time.Minute)),
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:idle":{}}}}`),
				})
				in.Markers = append(in.Markers, builders.Marker("ns", "zoo").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "idle", "true")).Build())
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
			evidence:   []string{"info Keys of others: these are not marks", "  label idle=true (set by kubectl-label, 60s ago)"},
		},
		"policy for other state only": {
			change: func(t *testing.T, in *explain.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", builders.Probe("busy").Label(v1alpha1.ProbeSucceeded, "busy", "true"))}
				replan(t, in)
				unmark(in)
				report(in, v1alpha1.ProbeFailed, "")
			},
			conclusion: "Marked: worker#busy is Failed, and this state sets no marks", next: run,
			evidence: []string{"the state Failed sets no marks: its markerPolicy has an entry for Succeeded only, and it has no podConditionType"},
		},
		"no policy and no condition": {
			change: func(t *testing.T, in *explain.Input) {
				in.Markers = []*v1alpha1.PodProbeMarker{marker("worker", builders.Probe("busy"))}
				replan(t, in)
				unmark(in)
			},
			conclusion: "Problem: Marks of worker#busy: the probe declares no marks: it has neither a podConditionType nor a markerPolicy", next: edit,
		},
	}
}

func accessSetups() map[string]setup {
	forbidden := explain.Unread{Reason: "no permission to get it", Check: "kubectl auth can-i get nodepodprobes"}
	return map[string]setup{
		"CRD missing": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Unread[explain.SourceMarkers] = explain.Unread{Reason: "no such resource", NotServed: true, Check: "kubectl get crds"}
				in.Markers = nil
			},
			conclusion: "Problem: Markers: the markers of namespace ns cannot be read, because Seamark is not installed in the cluster", next: "kubectl get crds",
		},
		"no permission for markers": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Unread[explain.SourceMarkers], in.Markers = forbidden, nil
			},
			conclusion: "Unknown: this could not be read: Markers", next: forbidden.Check,
		},
		"only namespaced permissions": {
			change: func(_ *testing.T, in *explain.Input) {
				for _, s := range []explain.Source{explain.SourceNode, explain.SourcePlan, explain.SourceReports, explain.SourceAgent, explain.SourceManager} {
					in.Unread[s] = forbidden
				}
				in.Node, in.Plan, in.Slices, in.Agent, in.Lease = nil, nil, nil, nil, nil
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true). " +
				"Not checked: Node node-1, Manager, Plan of node node-1, Agent of node node-1, Report",
			evidence: []string{"ok Report of worker#busy: Succeeded for 5m: job 7 (from the condition of the pod)"},
		},
		"only namespaced permissions, and a wrong label": {
			change: func(_ *testing.T, in *explain.Input) {
				in.Unread[explain.SourcePlan], in.Unread[explain.SourceReports] = forbidden, forbidden
				in.Plan, in.Slices = nil, nil
				in.Pod.Labels["busy"] = "no"
				in.Pod.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:status":` + ownsMarks[len(`{"f:metadata":{"f:labels":{"f:busy":{}}},"f:status":`):])
			},
			conclusion: "Problem: Marks of worker#busy: the pod does not have the marks of the state: label busy: the manager has not written them", next: managerLogs,
		},
		"only namespaced permissions, and no marks": {
			change: func(_ *testing.T, in *explain.Input) {
				unreported(in)
				in.Plan = nil
				in.Unread[explain.SourcePlan], in.Unread[explain.SourceReports] = forbidden, forbidden
				in.Events = []corev1.Event{{
					InvolvedObject: corev1.ObjectReference{UID: in.Pod.UID}, Reason: "KruiseProbeError", Message: "worker#busy: no such file",
					LastTimestamp: ago(time.Minute),
				}}
			},
			conclusion: "Unknown: this could not be read: Plan of node node-1, Report, Report of worker#busy, Marks of worker#busy", next: forbidden.Check,
			evidence: []string{"event KruiseProbeError 60s ago: worker#busy: no such file"},
		},
		"another marker is not shown": {
			change: func(t *testing.T, in *explain.Input) {
				in.Markers = append(in.Markers, marker("zoo", builders.Probe("p").Container("none").Condition("x/y")))
				in.Marker = "worker"
				replan(t, in)
				report(in, v1alpha1.ProbeSucceeded, "job 7")
			},
			conclusion: "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)",
		},
	}
}
