// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// testUnreachable updates although a node is unreachable if the set exempts such nodes.
func testUnreachable(t *testing.T) {
	w := newWorld(t, 3).create(nil)
	w.images("agent:1", "agent:1", "agent:1")
	w.setBroken(2, true)
	w.until("the pod is not ready", func() error {
		pods := w.on(2)
		return await.ErrorIf(planning.Ready(&pods[0]), "it is")
	})
	w.taint(2, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	w.setImage("agent:2")
	// The pod that was not ready is replaced, and blocks the others at once.
	w.until("the pod that was not ready is replaced", func() error {
		pods := w.on(2)
		return await.ErrorIf(len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" || planning.Ready(&pods[0]), "not yet")
	})
	for i := range 2 {
		if pods := w.on(i); pods[0].Spec.Containers[0].Image != "agent:1" {
			t.Error("a node is updated although another one is unavailable")
		}
	}
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.ExemptUnreachableNodesKey: "true"}
	})
	w.until("the other nodes are updated", func() error {
		for i := range 2 {
			if pods := w.on(i); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" {
				return errors.New("not yet")
			}
		}
		return nil
	})
}

// testFailedPods replaces failed pods, the second one of a node later.
func testFailedPods(t *testing.T) {
	w := newWorld(t, 1).create(nil)
	w.images("agent:1")
	// No failed pod is deleted before the first one fails.
	start := time.Now()
	var replaced []time.Duration
	for range 3 {
		pod := w.on(0)[0]
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		w.UpdateStatus(&pod)
		w.until("the pod is replaced", func() error {
			pods := w.on(0)
			return await.ErrorIf(len(pods) != 1 || pods[0].UID == pod.UID || !planning.Ready(&pods[0]), "not yet")
		})
		replaced = append(replaced, time.Since(start))
	}
	if replaced[1] < time.Second || replaced[2] < 3*time.Second {
		t.Errorf("pods were replaced after %v, want the second one after 1 s, and the third one 2 s later", replaced)
	}
}

// testRefusals shows in conditions why pods are not created.
func testRefusals(t *testing.T) {
	w := newWorld(t, 1)
	quota := w.Quota("none", corev1.ResourcePods, "0")
	w.create(nil)
	if c := w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionTrue, "WriteFailed"); !strings.Contains(c.Message, "exceeded quota: none") {
		t.Error(c.Message)
	}
	w.Delete(quota)
	w.images("agent:1")
	w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionFalse, "Recovered")
	affinity := func(operator corev1.NodeSelectorOperator) {
		w.edit(func(set *v1alpha1.DaemonSet) {
			set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "world", Operator: operator}},
				}}},
			}}
		})
	}
	affinity("Likes")
	w.until("the condition names the field", func() error {
		for _, c := range w.set.Status.Conditions {
			if c.Type == v1alpha1.DaemonSetFailedCreate && c.Reason == "PlanFailed" && strings.Contains(c.Message,
				`spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator`) {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.set.Status.Conditions)
	})
	affinity(corev1.NodeSelectorOpExists)
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
}

// testAdoption adopts a pod that the selector matches, releases one that it no longer matches, and deletes a second pod
// of a node.
func testAdoption(t *testing.T) {
	w := newWorld(t, 1)
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "orphan", Labels: map[string]string{"app": "agent"}},
		Spec:       *w.set.Spec.Template.Spec.DeepCopy(),
	}
	orphan.Spec.NodeName = w.node(0)
	w.Create(orphan)
	w.create(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteDaemonSetStrategyType })
	w.until("one pod remains", func() error {
		pods := w.on(0)
		return await.ErrorIf(len(pods) != 1 || metav1.GetControllerOf(&pods[0]) == nil, "%d pods", len(pods))
	})
	pod := w.on(0)[0]
	w.Edit(&pod, func() { pod.Labels["app"] = "other" })
	w.until("the pod is released and replaced", func() error {
		pods := w.on(0)
		return await.ErrorIf(len(pods) != 2 || (metav1.GetControllerOf(&pods[0]) == nil) == (metav1.GetControllerOf(&pods[1]) == nil), "%d pods", len(pods))
	})
}

// testDrain evicts the pod of a cordoned node, as kubectl drain does: the node gets another one at once. A selector of pods
// leaves out the pods of DaemonSets.
func testDrain(t *testing.T) {
	w := newWorld(t, 2).create(func(*v1alpha1.DaemonSet) {})
	w.images("agent:1", "agent:1")
	w.editNode(0, func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	})
	pod := w.on(0)[0]
	others, err := labels.Parse("seamark.dev/workload!=DaemonSet")
	expect.NoError(t, err)
	if others.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the selector %s matches the labels %v", others, pod.Labels)
	}
	expect.NoError(t, w.Client.SubResource("eviction").Create(t.Context(), &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}))
	w.until("the cordoned node has another pod", func() error {
		found := w.on(0)
		return await.ErrorIf(len(found) != 1 || found[0].UID == pod.UID || found[0].DeletionTimestamp != nil, "%d pods", len(found))
	})
}

// testPreDownload pulls the images of an update that is paused, on the nodes that it reaches, and then updates.
func testPreDownload(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.PreDownloadParallelismKey: "100%"}
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused, r.Partition = new(true), number(1) })
	})
	w.images("agent:1", "agent:1", "agent:1")
	jobs := func(want int, check func(*v1alpha1.ImagePullJob) error) {
		t.Helper()
		w.until(fmt.Sprintf("%d jobs exist", want), func() error {
			list := &v1alpha1.ImagePullJobList{}
			w.List(list)
			if len(list.Items) != want {
				return fmt.Errorf("%d jobs", len(list.Items))
			}
			var errs []error
			for i := range list.Items {
				errs = append(errs, check(&list.Items[i]))
			}
			return errors.Join(errs...)
		})
	}
	pulledOn := func(n int32) func(*v1alpha1.ImagePullJob) error {
		return func(job *v1alpha1.ImagePullJob) error {
			return await.ErrorIf(job.Spec.Image != "agent:2" || job.Status.Succeeded != n || job.Status.CompletionTime == nil, "job %+v", job.Status)
		}
	}
	w.setImage("agent:2")
	jobs(1, pulledOn(2))
	w.has("PreDownloading", corev1.ConditionFalse, "Pulled")
	w.images("agent:1", "agent:1", "agent:1")
	// More nodes: the job is created again.
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = number(0) })
	jobs(1, pulledOn(3))
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = nil })
	w.images("agent:2", "agent:2", "agent:2")
	jobs(0, nil)
}
