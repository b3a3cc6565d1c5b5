// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/test/expect"
)

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", Generation: 1, CreationTimestamp: ago(time.Hour)}
}

// ready returns a node that is ready, with taints as key=effect.
func ready(name string, taints ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(time.Hour)}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}},
	}}
	for _, taint := range taints {
		key, effect, _ := strings.Cut(taint, "=")
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect)})
	}
	return node
}

func lost(name string) *corev1.Node {
	node := ready(name)
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	return node
}

// daemon returns the DaemonSet agent and its pod on a node. The pod is ready unless the edit changes that.
func daemon() *v1alpha1.DaemonSet {
	set := &v1alpha1.DaemonSet{ObjectMeta: metaOf("agent"), Status: v1alpha1.DaemonSetStatus{
		ObservedGeneration: 1, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		UpdatedNumberScheduled: 1, UpdatedReady: 1,
	}}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"agent": "yes"}
	return set
}

func labeled(node *corev1.Node) *corev1.Node {
	node.Labels = map[string]string{"agent": "yes"}
	return node
}

func daemonPod(node string, edit func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf("agent-" + node), Spec: corev1.PodSpec{NodeName: node}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(daemon(), v1alpha1.GroupVersion().WithKind("DaemonSet"))}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Minute)}}
	if edit != nil {
		edit(pod)
	}
	return pod
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = nil
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func broadcast(edit func(*v1alpha1.BroadcastJob)) *v1alpha1.BroadcastJob {
	job := &v1alpha1.BroadcastJob{ObjectMeta: metaOf("report"), Status: v1alpha1.BroadcastJobStatus{ObservedGeneration: 1}}
	job.Status.Phase, job.Status.StartTime = v1alpha1.BroadcastJobRunning, new(ago(time.Minute))
	if edit != nil {
		edit(job)
	}
	return job
}

func broadcastPod(node string, phase corev1.PodPhase) *corev1.Pod {
	pod := broadcastjob.Pod(broadcast(nil), node)
	pod.Name, pod.Spec.NodeName, pod.Status.Phase = "report-"+node, node, phase
	if phase == corev1.PodFailed {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 3, Reason: "Error"},
			},
		}}
	}
	return pod
}

func pull(edit func(*v1alpha1.ImagePullJob)) *v1alpha1.ImagePullJob {
	job := &v1alpha1.ImagePullJob{ObjectMeta: metaOf("game"), Spec: v1alpha1.ImagePullJobSpec{Image: "game:1"}}
	job.Status.ObservedGeneration = 1
	if edit != nil {
		edit(job)
	}
	return job
}

func cron(edit func(*v1alpha1.AdvancedCronJob)) *v1alpha1.AdvancedCronJob {
	object := &v1alpha1.AdvancedCronJob{ObjectMeta: metaOf("backup")}
	object.Spec.Schedule, object.Spec.Template.JobTemplate = "@hourly", &runtime.RawExtension{}
	object.Status = v1alpha1.AdvancedCronJobStatus{
		ObservedGeneration: 1, ObservedSchedule: "@hourly", Since: new(ago(time.Hour)), Type: v1alpha1.JobTemplateKind, LastScheduleTime: new(ago(0)),
		Conditions: []metav1.Condition{{
			Type: v1alpha1.AdvancedCronJobScheduled, Status: metav1.ConditionTrue, Reason: cronjob.ReasonScheduled, LastTransitionTime: ago(time.Hour),
			Message: "The next run is at 2026-11-22T13:00:00Z, Etc/UTC.",
		}},
	}
	if edit != nil {
		edit(object)
	}
	return object
}

// jobOf returns the Job of a slot.
func jobOf(slot metav1.Time, ended batchv1.JobConditionType) cronjob.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: cronjob.Name(cron(nil), slot.Time), Annotations: map[string]string{
		v1alpha1.ScheduledAtKey: slot.Format(time.RFC3339),
	}}}
	return cronjob.Job{Object: job, GroupVersionKind: cronjob.Kind(v1alpha1.JobTemplateKind), Ended: ended}
}

// lines returns the steps as text: the verdict, the title, the text, and the evidence.
func lines(steps []explanation.Step) (lines []string) {
	for _, step := range steps {
		lines = append(lines, fmt.Sprintf("%s %s: %s", step.Verdict, step.Title, step.Text))
		for _, line := range step.Evidence {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// workloadCases are sets and jobs, and the steps about them after that of the controllers.
// workloadCase is an input, and the steps of its answer after the first one.
type workloadCase struct {
	in   explanation.WorkloadInput
	want []string
	// next is the command of the conclusion. Empty matches any.
	next string
}

func workloadCases() map[string]workloadCase {
	const scheduled = "ok Condition Scheduled: True (Scheduled) for 60m: The next run is at 2026-11-22T13:00:00Z, Etc/UTC."
	return map[string]workloadCase{
		"DaemonSet, as it should be": {
			in: explanation.WorkloadInput{Object: daemon(), Nodes: []*corev1.Node{labeled(ready("a"))}, Pods: []*corev1.Pod{daemonPod("a", nil)}},
			want: []string{
				"ok Rollout: 1 of 1 pods are updated and available",
				"ok Nodes: 1 of 1 nodes that fit have a pod",
				"ok Pods: 1 of 1 are available",
			},
		},
		"DaemonSet, nodes without a pod, and nodes that do not fit": {
			in: explanation.WorkloadInput{
				Object: daemon(),
				Nodes: []*corev1.Node{
					ready("d"), labeled(ready("a")), labeled(lost("b")), labeled(ready("c", "gpu=NoSchedule")), ready("e", "gpu=NoExecute"), labeled(ready("f", "x=NoExecute")),
				},
				Pods: []*corev1.Pod{daemonPod("a", nil), daemonPod("f", nil)},
			},
			want: []string{
				"ok Rollout: 1 of 1 pods are updated and available",
				"waiting Nodes: 1 of 2 nodes that fit have no pod: b (not ready)",
				"  the controller creates them within seconds, unless the partition also limits creation or a condition above says why it cannot",
				"waiting Nodes that do not fit: the pods of 1 nodes are deleted",
				"  f: the template does not tolerate the taint x:NoExecute",
				"info Nodes that do not fit: 3 nodes get no pod",
				"  nodeSelector or the required node affinity of the template does not select the node: d, e",
				"  the template does not tolerate the taint gpu:NoSchedule: c",
				"ok Pods: 2 of 2 are available",
			},
		},
		"DaemonSet, pods that are not available, and conditions": {
			in: explanation.WorkloadInput{
				Object: func() *v1alpha1.DaemonSet {
					set := daemon()
					set.Generation, set.Spec.MinReadySeconds = 2, 90
					set.Status.Conditions = []appsv1.DaemonSetCondition{
						{
							Type: v1alpha1.DaemonSetProgressing, Status: corev1.ConditionFalse, Reason: "BlockedByUnavailable", Message: "Nodes: a.", LastTransitionTime: ago(time.Minute),
						},
						{Type: v1alpha1.DaemonSetFailedCreate, Status: corev1.ConditionFalse, Reason: "Recovered"},
						{
							Type: v1alpha1.DaemonSetFailedUpdate, Status: corev1.ConditionTrue, Reason: "Failed", Message: "quota", LastTransitionTime: ago(time.Minute),
						},
					}
					return set
				}(),
				Nodes: []*corev1.Node{labeled(ready("a")), labeled(ready("b")), labeled(ready("c")), labeled(ready("d"))},
				Pods: []*corev1.Pod{
					daemonPod("a", waits("ImagePullBackOff", "no such image")), daemonPod("b", nil), daemonPod("c", waits("ContainerCreating", "")),
					daemonPod("d", func(pod *corev1.Pod) {
						pod.Spec = corev1.PodSpec{}
						nodefit.Bind(&pod.Spec, "d")
						pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient cpu."}}
					}),
				},
			},
			want: []string{
				"problem Generation: the last change was not handled: the generation is 2, and the status is that of generation 1",
				"  the configuration of seamark-workloads must enable the controller of a DaemonSet",
				"problem Condition Progressing: False (BlockedByUnavailable) for 60s: Nodes: a.",
				"problem Condition FailedUpdate: True (Failed) for 60s: quota",
				"ok Nodes: 4 of 4 nodes that fit have a pod",
				"problem Pods: 0 of 4 are available, and node a, pod agent-a: container main waits: ImagePullBackOff: no such image",
				"  node a, pod agent-a: container main waits: ImagePullBackOff: no such image",
				"  node d, pod agent-d: waits for the scheduler: Insufficient cpu.",
				"  node b, pod agent-b: is ready, and available in 30s",
				"  node c, pod agent-c: is not ready",
			},
		},
		"DaemonSet, without permissions": {
			in: explanation.WorkloadInput{
				Object: daemon(), Unread: map[permission.Resource]permission.Missing{permission.Nodes: {Resource: permission.Nodes, Verb: "list"}},
				Pods: []*corev1.Pod{daemonPod("a", waits("ImagePullBackOff", "no such image"))},
			},
			want: []string{
				"ok Rollout: 1 of 1 pods are updated and available",
				"unknown Nodes: the nodes cannot be read: no permission to list nodes in the cluster",
				"problem Pods: 0 of 1 are available, and node a, pod agent-a: container main waits: ImagePullBackOff: no such image",
				"  node a, pod agent-a: container main waits: ImagePullBackOff: no such image",
			},
		},
		"BroadcastJob, a step": {
			in: explanation.WorkloadInput{
				Object: broadcast(func(job *v1alpha1.BroadcastJob) { job.Spec.Parallelism = new(intstr.FromInt32(1)) }),
				Nodes:  []*corev1.Node{ready("a"), ready("b"), ready("c"), ready("d", "gpu=NoExecute"), lost("e")},
				Pods:   []*corev1.Pod{broadcastPod("a", corev1.PodSucceeded), broadcastPod("b", corev1.PodRunning)},
			},
			want: []string{
				"waiting Nodes: 1 of 3 nodes that fit have no pod: c",
				"  spec.parallelism permits pods on 1 nodes at the same time, and the next ones follow when they have ended",
				"info Nodes that do not fit: 2 nodes get no pod",
				"  the job goes on without nodes that are not ready for 5m0s: e",
				"  the template does not tolerate the taint gpu:NoExecute: d",
				"waiting Pods: 1 of 2 have succeeded",
				"  node b, pod report-b: is not ready",
			},
		},
		"BroadcastJob, paused by a failure": {
			in: explanation.WorkloadInput{
				Object: broadcast(func(job *v1alpha1.BroadcastJob) {
					job.Spec.FailurePolicy.Type = v1alpha1.BroadcastJobPause
					job.Status.Conditions = []metav1.Condition{{
						Type: v1alpha1.BroadcastJobComplete, Status: metav1.ConditionFalse, Reason: broadcastjob.ReasonPodFailed, Message: "1 failed: a.", LastTransitionTime: ago(time.Minute),
					}}
				}),
				Nodes: []*corev1.Node{ready("a"), ready("b")},
				Pods:  []*corev1.Pod{broadcastPod("a", corev1.PodFailed)},
			},
			want: []string{
				"problem Condition Complete: False (PodFailed) for 60s: 1 failed: a.",
				"waiting Nodes: 1 of 2 nodes that fit have no pod: b",
				"  no pod is created while the job is paused",
				"problem Pods: 0 of 1 have succeeded, and node a, pod report-a: failed: container main ended with the exit code 3 (Error)",
				"  node a, pod report-a: failed: container main ended with the exit code 3 (Error)",
			},
			next: "kubectl -n ns logs report-a -c main --tail=50",
		},
		"ImagePullJob, pulls": {
			in: explanation.WorkloadInput{
				Object: pull(nil), Nodes: []*corev1.Node{ready("a"), ready("b"), lost("c")},
				Pods: []*corev1.Pod{func() *corev1.Pod {
					pod := imagepull.Pod(pull(nil), "a", 1)
					pod.CreationTimestamp = ago(time.Minute)
					waits("ErrImagePull", "401 Unauthorized")(pod)
					pod.Status.ContainerStatuses[0].Name = pod.Spec.Containers[0].Name
					return pod
				}()},
			},
			want: []string{
				"waiting Nodes: 1 of 3 nodes wait for their turn: b",
				"  spec.parallelism permits 1 pulls at the same time; imagePull.total and imagePull.perNode of seamark-workloads limit all jobs",
				"waiting Nodes that cannot pull: not ready, or with DiskPressure: c",
				"problem Pods: 0 of 1 have ended, and node a, pod " + imagepull.Name("uid", "a", 1) + ": container pull waits: ErrImagePull: 401 Unauthorized",
				"  node a, pod " + imagepull.Name("uid", "a", 1) + ": container pull waits: ErrImagePull: 401 Unauthorized",
			},
		},
		"ImagePullJob, failed": {
			in: explanation.WorkloadInput{Object: pull(func(job *v1alpha1.ImagePullJob) {
				job.Status.CompletionTime, job.Status.FailedNodes, job.Status.Message = new(ago(0)), []string{"a"}, "0 of 1 nodes have the image. 1 failed. a: 401"
				job.Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ImagePullJobComplete, Status: metav1.ConditionTrue, Reason: imagepull.ReasonNodesFailed, Message: job.Status.Message, LastTransitionTime: ago(time.Minute),
				}}
			})},
			want: []string{
				"problem Condition Complete: True (NodesFailed) for 60s: 0 of 1 nodes have the image. 1 failed. a: 401",
				"problem Failed nodes: a",
				"  0 of 1 nodes have the image. 1 failed. a: 401",
			},
		},
		"AdvancedCronJob, the last run succeeded": {
			in:   explanation.WorkloadInput{Object: cron(nil), Jobs: []cronjob.Job{jobOf(ago(0), batchv1.JobComplete)}},
			want: []string{scheduled, "ok Last run: Job backup-1795348800 of 2026-11-22T12:00:00Z succeeded"},
		},
		"AdvancedCronJob, the last run was dropped": {
			in: explanation.WorkloadInput{Object: cron(nil), Events: []corev1.Event{
				{InvolvedObject: corev1.ObjectReference{Kind: "AdvancedCronJob"}, Reason: "Created", LastTimestamp: ago(0)},
				{
					InvolvedObject: corev1.ObjectReference{Kind: "AdvancedCronJob"}, Reason: cronjob.ReasonMissedDeadline, Message: "The run did not start.", LastTimestamp: ago(time.Minute),
				},
			}},
			want: []string{
				scheduled, "info Last run: the run of 2026-11-22T12:00:00Z has no Job any more: it was deleted, or the run was dropped",
				"  MissedDeadline, 60s ago: The run did not start.",
			},
		},
		"AdvancedCronJob, a run waits for an earlier one": {
			in: explanation.WorkloadInput{
				Object: cron(func(object *v1alpha1.AdvancedCronJob) {
					object.Spec.ConcurrencyPolicy, object.Status.LastScheduleTime = v1alpha1.ForbidConcurrent, new(ago(time.Hour))
				}),
				Jobs: []cronjob.Job{jobOf(ago(time.Hour), "")},
			},
			want: []string{
				scheduled, "ok Last run: Job backup-1795345200 of 2026-11-22T11:00:00Z runs",
				"waiting Due run: the run of 2026-11-22T12:00:00Z waits, because spec.concurrencyPolicy is Forbid and an earlier one has not ended: backup-1795345200",
			},
		},
		"AdvancedCronJob, paused": {
			in: explanation.WorkloadInput{Object: cron(func(object *v1alpha1.AdvancedCronJob) {
				object.Spec.Paused, object.Status.LastScheduleTime = new(true), nil
				object.Status.Conditions[0].Status, object.Status.Conditions[0].Reason, object.Status.Conditions[0].Message = metav1.ConditionFalse, cronjob.ReasonPaused, "spec.paused is true."
			})},
			want: []string{"waiting Condition Scheduled: False (Paused) for 60m: spec.paused is true.", "info Last run: there was none"},
		},
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	cases := workloadCases()
	maps.Copy(cases, setCases())
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := test.in
			in.Kind, _, _ = strings.Cut(name, ",")
			in.Now, in.SystemNamespace = now(), "seamark-system"
			in.Lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("one"), RenewTime: &metav1.MicroTime{Time: now()}}}
			got := explanation.Workload(in)
			expect.Equal(t, "steps", append([]string{"ok Controllers: one leads"}, test.want...), lines(got.Steps))
			settled := true
			for _, step := range got.Steps {
				settled = settled && step.Verdict != explanation.Problem && step.Verdict != explanation.Waiting
				if step.Verdict == explanation.Problem && step.Next == "" {
					t.Errorf("no next command for %q", step.Text)
				}
			}
			if test.next != "" {
				expect.Equal(t, "next command", test.next, got.Next)
			}
			if got.Settled != settled || got.Conclusion == "" {
				t.Errorf("settled is %v, want %v: %q", got.Settled, settled, got.Conclusion)
			}
		})
	}
}

// TestPodsOfWorkloads says which set or job a pod belongs to, and that nothing probes the pod of a pull.
func TestPodsOfWorkloads(t *testing.T) {
	t.Parallel()
	in := healthy()
	in.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
	got := explanation.Pod(in)
	if want := []string{
		"info Workload: a pod of the DaemonSet agent", "  what it waits for: seamark explain daemonset/agent -n ns",
	}; !got.Marked || cmp.Diff(want, lines(got.Steps[1:2])) != "" {
		t.Errorf("steps %q, want %q", lines(got.Steps[1:2]), want)
	}
	in.Pod.OwnerReferences[0].Kind, in.Pod.OwnerReferences[0].Name = "ImagePullJob", "game"
	got = explanation.Pod(in)
	if want := "Problem: Pod: it pulls an image for the ImagePullJob game: no container of it ever runs, so it is not probed"; got.Conclusion != want {
		t.Errorf("conclusion %q, want %q", got.Conclusion, want)
	}
}
