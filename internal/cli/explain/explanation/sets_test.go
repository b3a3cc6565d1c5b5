// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

// arena returns a CloneSet whose three pods are updated and available, as the edit changes it.
func arena(edit func(set *v1alpha1.CloneSet)) *v1alpha1.CloneSet {
	set := &v1alpha1.CloneSet{ObjectMeta: metaOf("arena"), Status: v1alpha1.CloneSetStatus{
		ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		UpdatedReplicas: 3, UpdatedReadyReplicas: 3, UpdatedAvailableReplicas: 3, ExpectedUpdatedReplicas: 3,
	}}
	set.Spec.Replicas = new(int32(3))
	edit(set)
	return set
}

// arenaPod returns a pod of the CloneSet that is ready.
func arenaPod(name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(name), Spec: corev1.PodSpec{NodeName: "a"}}
	pod.Labels = labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(arena(func(*v1alpha1.CloneSet) {}), v1alpha1.GroupVersion().WithKind("CloneSet"))}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Minute)}}
	return pod
}

// logs returns a SidecarSet with selected pods that run without it, and a condition.
func logs(uninjected int32, condition string, status metav1.ConditionStatus) *v1alpha1.SidecarSet {
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Status: v1alpha1.SidecarSetStatus{
		MatchedPods: 3, UpdatedPods: 2, ReadyPods: 1, UninjectedPods: uninjected,
		Conditions: []metav1.Condition{{Type: condition, Status: status, Reason: "Why", Message: "because", LastTransitionTime: ago(time.Minute)}},
	}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}
	return set
}

func setCases() map[string]workloadCase {
	busy := map[string]string{pub.LifecycleStateKey: string(pub.LifecycleStatePreparingDelete), "busy": "true"}
	return map[string]workloadCase{
		"CloneSet, writes are refused": {
			in: explanation.WorkloadInput{Object: arena(func(set *v1alpha1.CloneSet) {
				set.Status.Replicas = 2
				set.Status.Conditions = []v1alpha1.CloneSetCondition{{
					Type: v1alpha1.CloneSetConditionFailedScale, Status: corev1.ConditionTrue, Reason: "WriteFailed", Message: "quota",
					LastTransitionTime: ago(time.Minute),
				}}
			})},
			want: []string{
				"problem Condition FailedScale: True (WriteFailed) for 60s: quota",
				"waiting Rollout: 2 of 3 pods exist: quota",
				"ok Pods: 0 of 0 are available",
			},
		},
		"CloneSet, two pods are held by preDelete": {
			in: explanation.WorkloadInput{
				Object: arena(func(set *v1alpha1.CloneSet) {
					set.Spec.Replicas = new(int32(1))
					set.Status.AvailableReplicas, set.Status.UpdatedAvailableReplicas, set.Status.ExpectedUpdatedReplicas = 1, 1, 1
					set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"busy": "true"}}}
				}),
				Pods: []*corev1.Pod{arenaPod("arena-a", busy), arenaPod("arena-b", busy), arenaPod("arena-c", nil)},
			},
			want: []string{
				"waiting Rollout: 2 pods to be deleted",
				"waiting Pods: 1 of 3 are available",
				"  node a, pod arena-a: spec.lifecycle.preDelete holds it in the state PreparingDelete until the label busy=true is removed",
				"  node a, pod arena-b: spec.lifecycle.preDelete holds it in the state PreparingDelete until the label busy=true is removed",
			},
		},
		"CloneSet, stalled by an image that cannot be pulled": {
			in: explanation.WorkloadInput{
				Object: arena(func(set *v1alpha1.CloneSet) {
					set.Status.UpdatedAvailableReplicas = 2
					set.Status.Conditions = []v1alpha1.CloneSetCondition{{
						Type: v1alpha1.CloneSetConditionTypeProgressing, Status: corev1.ConditionFalse,
						Reason: string(v1alpha1.CloneSetProgressDeadlineExceeded), Message: "timed out", LastTransitionTime: ago(time.Minute),
					}}
				}),
				Pods: []*corev1.Pod{func() *corev1.Pod {
					pod := arenaPod("arena-a", nil)
					waits("ImagePullBackOff", "no such image")(pod)
					return pod
				}()},
			},
			want: []string{
				"problem Condition Progressing: False (ProgressDeadlineExceeded) for 60s: timed out",
				"problem Rollout: timed out",
				"problem Pods: 0 of 1 are available, and node a, pod arena-a: container main waits: ImagePullBackOff: no such image",
				"  node a, pod arena-a: container main waits: ImagePullBackOff: no such image",
			},
			next: "kubectl -n ns describe pod arena-a",
		},
		"CloneSet, pods are guarded": {
			in: explanation.WorkloadInput{Object: arena(func(set *v1alpha1.CloneSet) {
				set.Status.UpdatedReplicas, set.Status.UpdatedAvailableReplicas = 1, 1
				set.Status.Conditions = []v1alpha1.CloneSetCondition{{
					Type: planning.PodsGuarded, Status: corev1.ConditionTrue, Reason: "Guarded",
					Message: "PodDisruptionBudget busy guards arena-a, arena-b", LastTransitionTime: ago(time.Minute),
				}}
			})},
			want: []string{
				"waiting Condition PodsGuarded: True (Guarded) for 60s: PodDisruptionBudget busy guards arena-a, arena-b",
				"  a pod is free when its labels no longer match the selector of the budget",
				"  to release one at once: kubectl -n ns label pod arena-a seamark.dev/guard-exempt=",
				"waiting Rollout: 1 of 3 pods are updated: PodDisruptionBudget busy guards arena-a, arena-b",
				"ok Pods: 0 of 0 are available",
			},
			next: "kubectl -n ns describe pdb busy",
		},
		"CloneSet, paused": {
			in: explanation.WorkloadInput{Program: "kubectl seamark", Object: arena(func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Paused = true
				set.Status.UpdatedReplicas, set.Status.UpdatedAvailableReplicas = 1, 1
			})},
			want: []string{"waiting Rollout: the update is paused: 1 of 3 pods are updated", "ok Pods: 0 of 0 are available"},
			next: "kubectl seamark rollout resume cloneset/arena -n ns",
		},
		"SidecarSet, refused": {
			in: explanation.WorkloadInput{Object: logs(3, v1alpha1.SidecarSetAccepted, metav1.ConditionFalse)},
			want: []string{
				"problem Condition Accepted: False (Why) for 60s: because",
				"info Pods: 3 pods have the containers, 2 of them of the latest revision and 1 ready",
				"problem Pods without the containers: 3 selected by the set",
				"  pods that are recreated do not get the containers either: its entry has not been written yet",
			},
		},
		"SidecarSet, pods without the containers": {
			in: explanation.WorkloadInput{Object: logs(4, v1alpha1.SidecarSetInjecting, metav1.ConditionTrue)},
			want: []string{
				"ok Condition Injecting: True (Why) for 60s: because", "info Pods: 3 pods have the containers, 2 of them of the latest revision and 1 ready",
				"problem Pods without the containers: 4 selected by the set", "  recreate them, for example by kubectl rollout restart of their workloads: " +
					"they were created before the set was in force, or while no injector answered",
			},
			next: "kubectl get pods --all-namespaces -l app=worker",
		},
		"SidecarSet, all pods have the containers": {
			in: explanation.WorkloadInput{Object: logs(0, v1alpha1.SidecarSetInjecting, metav1.ConditionTrue)},
			want: []string{
				"ok Condition Injecting: True (Why) for 60s: because", "info Pods: 3 pods have the containers, 2 of them of the latest revision and 1 ready",
			},
		},
		"CloneSet, a partition is reached": {
			in: explanation.WorkloadInput{Object: arena(func(set *v1alpha1.CloneSet) {
				set.Status.UpdatedReplicas, set.Status.UpdatedAvailableReplicas, set.Status.ExpectedUpdatedReplicas = 1, 1, 1
			})},
			want: []string{"ok Rollout: 1 of 3 pods are updated and available; kept at an earlier revision: 2", "ok Pods: 0 of 0 are available"},
		},
	}
}

// TestPodsThatWait says what the set of a pod waits for in it.
func TestPodsThatWait(t *testing.T) {
	t.Parallel()
	const held = "in the state PreparingDelete"
	hook := func(set *v1alpha1.CloneSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"hook": "true"}}}
	}
	labels := func(pod *corev1.Pod) {
		pod.Labels[pub.LifecycleStateKey], pod.Labels["hook"] = string(pub.LifecycleStatePreparingDelete), "true"
	}
	for name, test := range map[string]struct {
		set  *v1alpha1.CloneSet
		edit func(*corev1.Pod)
		want string
	}{
		"held": {set: arena(hook), edit: labels, want: "spec.lifecycle.preDelete holds it " + held + " until the label hook=true is removed"},
		"held, and the set is not known": {
			edit: labels, want: "it is " + held + ", and the set cannot be read, so the hook that holds it is not known",
		},
		"old, and the update is paused": {
			set: arena(func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Paused, set.Status.UpdateRevision, set.Status.UpdatedReplicas = true, "arena-2", 1
			}),
			want: "it does not have the update revision yet: the update is paused: 1 of 3 pods are updated",
		},
		"old, and the update goes on": {
			set:  arena(func(set *v1alpha1.CloneSet) { set.Status.UpdateRevision, set.Status.UpdatedReplicas = "arena-2", 1 }),
			want: "it does not have the update revision yet: 1 of 3 pods are updated",
		},
		"old, and the partition permits some pods": {
			set: arena(func(set *v1alpha1.CloneSet) {
				set.Status.UpdateRevision, set.Status.ExpectedUpdatedReplicas, set.Status.UpdatedReplicas = "arena-2", 2, 1
			}),
			want: "it does not have the update revision: 1 of 2 pods are updated (spec.updateStrategy.partition permits 2 of 3)",
		},
		"kept by the partition": {
			set: arena(func(set *v1alpha1.CloneSet) {
				set.Status.UpdateRevision, set.Status.ExpectedUpdatedReplicas, set.Status.UpdatedReplicas = "arena-2", 2, 2
			}),
			want: "spec.updateStrategy.partition keeps it at an earlier revision: 2 of 3 pods are updated",
		},
		"updated on deletion": {
			set: arena(func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteCloneSetUpdateStrategyType
				set.Status.UpdateRevision, set.Status.UpdatedReplicas = "arena-2", 0
			}),
			want: "it gets the update revision when it is deleted, because spec.updateStrategy.type is OnDelete",
		},
		"of a node that the set does not count": {
			set:  arena(func(set *v1alpha1.CloneSet) { set.Status.UpdateRevision = "arena-2" }),
			want: "it does not have the update revision: 3 of 3 pods are updated and available",
		},
		"as it should be": {set: arena(func(*v1alpha1.CloneSet) {})},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy()
			in.Pod.OwnerReferences = arenaPod("arena-a", nil).OwnerReferences
			in.Pod.Status.Conditions = append(in.Pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			if test.set != nil {
				in.Set = test.set
			}
			if test.edit != nil {
				test.edit(in.Pod)
			}
			const marked = "Marked: worker#busy is Succeeded (condition example.com/busy=True, label busy=true)"
			step, conclusion, next := "info Workload: a pod of the CloneSet arena", marked, ""
			if test.want != "" {
				step, conclusion, next = step+": "+test.want, marked+". CloneSet arena: "+test.want, describePod
			}
			got := explanation.Pod(in)
			expect.Equal(t, "step", step, lines(got.Steps)[1])
			expect.Equal(t, "conclusion", conclusion, got.Conclusion)
			expect.Equal(t, "next command", next, got.Next)
			expect.Equal(t, "marked", true, got.Marked)
		})
	}
}
