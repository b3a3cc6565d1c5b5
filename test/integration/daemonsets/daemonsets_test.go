// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

func TestDaemonSets(t *testing.T) {
	stop := start(t, server)
	t.Cleanup(stop)
	for name, test := range map[string]func(t *testing.T){
		"placement":            testPlacement,
		"recreation":           testRecreation,
		"in place":             testInPlace,
		"surge":                testSurge,
		"partition":            testPartition,
		"progressive creation": testProgressive,
		"selector of nodes":    testSelector,
		"paused and on delete": testStopped,
		"hook":                 testHook,
		"two updates":          testTwoUpdates,
		"unreachable":          testUnreachable,
		"failed pods":          testFailedPods,
		"refusals":             testRefusals,
		"adoption":             testAdoption,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// testPlacement changes nodes, and checks pods and status.
func testPlacement(t *testing.T) {
	w := newWorld(t, 3)
	w.taint(2, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule})
	w.create(nil)
	w.images("agent:1", "agent:1")
	w.addNode(3)
	w.taint(2)
	w.taint(1, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule})
	w.images("agent:1", "agent:1", "agent:1", "agent:1")
	w.until("the status counts the nodes", func() error {
		if s := w.set.Status; s.DesiredNumberScheduled != 3 || s.CurrentNumberScheduled != 3 || s.NumberMisscheduled != 1 || s.NumberReady != 3 ||
			s.UpdatedNumberScheduled != 3 || s.UpdatedReady != 3 || s.NumberAvailable != 3 || s.NumberUnavailable != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	pod := w.on(0)[0]
	owner := metav1.GetControllerOf(&pod)
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if owner.Kind != "DaemonSet" || owner.UID != w.set.UID || !strings.HasPrefix(pod.Name, "agent-") || pod.Labels["controller-revision-hash"] != w.set.Status.DaemonSetHash ||
		len(required) != 1 || required[0].MatchFields[0].Values[0] != w.node(0) ||
		!slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoExecute
		}) {
		t.Errorf("pod %+v", pod)
	}
	w.taint(1, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoExecute})
	w.editNode(2, func(node *corev1.Node) { node.Labels = map[string]string{"test": "other"} })
	w.editNode(0, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	w.images("agent:1", "", "", "agent:1")
	must(t, w.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node(2)}}))
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
}

// testRecreation recreates pods, one after the other, from the last node on.
func testRecreation(t *testing.T) {
	w := newWorld(t, 4).create(nil)
	w.images("agent:1", "agent:1", "agent:1", "agent:1")
	var order []string
	stop := w.watch(func(pods map[string]*corev1.Pod) error {
		for _, pod := range pods {
			if planning.Terminating(pod) && !slices.Contains(order, pod.Spec.NodeName) {
				order = append(order, pod.Spec.NodeName)
			}
		}
		if n := readyNodes(pods); n < 3 {
			return fmt.Errorf("%d nodes have a ready pod", n)
		}
		return nil
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	stop()
	if want := []string{w.node(3), w.node(2), w.node(1), w.node(0)}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	// A broken image stops after one node, and the way back needs no other one.
	w.setImage("agent:broken")
	w.until("one node has the broken image", func() error {
		if pods := w.on(3); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:broken" {
			return errors.New("not yet")
		}
		return nil
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
}

// testInPlace updates images in place, and recreates pods for another change.
func testInPlace(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) {
			r.Type, r.MaxUnavailable = v1alpha1.InplaceRollingUpdateType, new(intstr.FromString("50%"))
		})
	})
	w.images("agent:1", "agent:1", "agent:1")
	uids := func() (all []types.UID) {
		for _, pod := range w.pods() {
			all = append(all, pod.UID)
		}
		return all
	}
	before := uids()
	stop := w.watch(func(pods map[string]*corev1.Pod) error {
		if n := readyNodes(pods); n < 1 {
			return fmt.Errorf("%d nodes have a ready pod", n)
		}
		return nil
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2")
	if after := uids(); !slices.Equal(before, after) {
		t.Errorf("UIDs %v, want %v", after, before)
	}
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	})
	w.until("pods are recreated", func() error {
		for _, pod := range w.pods() {
			if slices.Contains(before, pod.UID) || !planning.Ready(&pod) {
				return fmt.Errorf("pod %s", pod.Name)
			}
		}
		return nil
	})
	stop()
}

// testSurge creates each new pod before the old one is deleted.
func testSurge(t *testing.T) {
	w := newWorld(t, 4).create(func(set *v1alpha1.DaemonSet) {
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.MaxSurge = number(2) })
	})
	w.images("agent:1", "agent:1", "agent:1", "agent:1")
	stop := w.watch(func(pods map[string]*corev1.Pod) error {
		active := 0
		for _, pod := range pods {
			if planning.Active(pod) {
				active++
			}
		}
		if n := readyNodes(pods); n < 4 || active > 6 {
			return fmt.Errorf("%d nodes have a ready pod, and %d pods exist", n, active)
		}
		return nil
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	stop()
	// An old pod that is not ready is replaced at once.
	w.setBroken(0, true)
	w.setImage("agent:3")
	w.until("the new pod of the broken node is alone", func() error {
		if pods := w.on(0); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:3" {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	w.setBroken(0, false)
	w.images("agent:3", "agent:3", "agent:3", "agent:3")
}

func testPartition(t *testing.T) {
	w := newWorld(t, 4).create(func(set *v1alpha1.DaemonSet) {
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromString("50%")) })
	})
	w.images("agent:1", "agent:1", "agent:1", "agent:1")
	w.setImage("agent:2")
	w.images("agent:1", "agent:1", "agent:2", "agent:2")
	if c := w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "Partition"); !strings.Contains(c.Message, "keeps 2 nodes") {
		t.Error(c.Message)
	}
	// A node that joins counts.
	w.addNode(4)
	w.images("agent:1", "agent:1", "agent:2", "agent:2", "agent:2")
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = number(0) })
	w.images("agent:2", "agent:2", "agent:2", "agent:2", "agent:2")
}

// testProgressive creates the pods of a new set only on the nodes that partition permits.
func testProgressive(t *testing.T) {
	w := newWorld(t, 4).create(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.ProgressiveCreatePodKey: "true"}
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromString("75%")) })
	})
	w.images("agent:1")
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = number(1) })
	w.images("agent:1", "agent:1", "agent:1")
}

func testSelector(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) {
			r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "1"}}
		})
	})
	w.images("agent:1", "agent:1", "agent:1")
	w.editNode(1, func(node *corev1.Node) { node.Labels["wave"] = "1" })
	w.setImage("agent:2")
	w.images("agent:1", "agent:2", "agent:1")
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "NodeSelector")
	w.editNode(2, func(node *corev1.Node) { node.Labels["wave"] = "1" })
	w.images("agent:1", "agent:2", "agent:2")
	// A node that stops matching keeps its revision.
	w.editNode(1, func(node *corev1.Node) { delete(node.Labels, "wave") })
	w.setImage("agent:3")
	w.images("agent:1", "agent:2", "agent:3")
}

// testStopped pauses an update, and updates by deletion.
func testStopped(t *testing.T) {
	w := newWorld(t, 2).create(func(set *v1alpha1.DaemonSet) {
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused = new(true) })
	})
	w.images("agent:1", "agent:1")
	w.setImage("agent:2")
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "Paused")
	w.addNode(2)
	w.images("agent:1", "agent:1", "agent:2")
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Spec.UpdateStrategy = v1alpha1.DaemonSetUpdateStrategy{Type: v1alpha1.OnDeleteDaemonSetStrategyType}
	})
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionFalse, "OnDelete")
	pod := w.on(1)[0]
	must(t, w.Client.Delete(t.Context(), &pod))
	w.images("agent:1", "agent:2", "agent:2")
}

// testHook lets the hook hold a pod whose node goes, and comes back before the hook releases it.
func testHook(t *testing.T) {
	w := newWorld(t, 2).create(func(set *v1alpha1.DaemonSet) {
		set.Spec.Template.Labels["example.com/hold"] = "true"
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.com/hold": "true"}, MarkPodNotReady: true}}
	})
	w.images("agent:1", "agent:1")
	state := func(want pub.LifecycleStateType, ready bool) {
		t.Helper()
		w.until(fmt.Sprintf("the pod is %s", want), func() error {
			pods := w.on(1)
			if len(pods) != 1 || pods[0].Labels[pub.LifecycleStateKey] != string(want) || planning.Ready(&pods[0]) != ready {
				return fmt.Errorf("%d pods: %+v", len(pods), pods)
			}
			return nil
		})
	}
	w.taint(1, corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	state(pub.LifecycleStatePreparingDelete, false)
	w.taint(1)
	state(pub.LifecycleStateNormal, true)
	// An update is held, too. The way back clears what the hook has marked.
	w.setImage("agent:2")
	state(pub.LifecycleStatePreparingDelete, false)
	w.setImage("agent:1")
	state(pub.LifecycleStateNormal, true)
	w.taint(1, corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	state(pub.LifecycleStatePreparingDelete, false)
	pod := w.on(1)[0]
	before := pod.DeepCopy()
	delete(pod.Labels, "example.com/hold")
	must(t, w.Client.Patch(t.Context(), &pod, client.MergeFrom(before)))
	w.images("agent:1")
}

// testTwoUpdates starts an update before the pods of the last one are available.
func testTwoUpdates(t *testing.T) {
	w := newWorld(t, 3).create(nil)
	w.images("agent:1", "agent:1", "agent:1")
	stop := w.watch(func(pods map[string]*corev1.Pod) error {
		if n := readyNodes(pods); n < 2 {
			return fmt.Errorf("%d nodes have a ready pod", n)
		}
		return nil
	})
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Spec.MinReadySeconds, set.Spec.Template.Spec.Containers[0].Image = 2, "agent:2"
	})
	w.until("the first pod is new", func() error {
		if pods := w.on(2); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" || !planning.Ready(&pods[0]) {
			return errors.New("not yet")
		}
		return nil
	})
	w.setImage("agent:3")
	w.images("agent:3", "agent:3", "agent:3")
	stop()
}

// testUnreachable updates although a node is unreachable if the set exempts such nodes.
func testUnreachable(t *testing.T) {
	w := newWorld(t, 3).create(nil)
	w.images("agent:1", "agent:1", "agent:1")
	w.setBroken(2, true)
	w.until("the pod is not ready", func() error {
		if pods := w.on(2); planning.Ready(&pods[0]) {
			return errors.New("it is")
		}
		return nil
	})
	w.taint(2, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
	w.setImage("agent:2")
	// The pod that was not ready is replaced beside another one, and blocks then.
	w.until("two nodes are updated", func() error {
		for _, i := range []int{1, 2} {
			if pods := w.on(i); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" || planning.Ready(&pods[0]) != (i == 1) {
				return errors.New("not yet")
			}
		}
		return nil
	})
	if pods := w.on(0); pods[0].Spec.Containers[0].Image != "agent:1" {
		t.Error("a node is updated although another one is unavailable")
	}
	w.edit(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.ExemptUnreachableNodesKey: "true"}
	})
	w.until("the other nodes are updated", func() error {
		if pods := w.on(0); len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:2" {
			return errors.New("not yet")
		}
		return nil
	})
}

// testFailedPods replaces failed pods, the second one of a node later.
func testFailedPods(t *testing.T) {
	w := newWorld(t, 1).create(nil)
	w.images("agent:1")
	var replaced []time.Time
	for range 3 {
		pod := w.on(0)[0]
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		must(t, w.Client.Status().Update(t.Context(), &pod))
		w.until("the pod is replaced", func() error {
			if pods := w.on(0); len(pods) != 1 || pods[0].UID == pod.UID || !planning.Ready(&pods[0]) {
				return errors.New("not yet")
			}
			return nil
		})
		replaced = append(replaced, time.Now())
	}
	if first := replaced[1].Sub(replaced[0]); first < 900*time.Millisecond {
		t.Errorf("a second pod was replaced after %v", first)
	}
}

// testRefusals shows in conditions why pods are not created.
func testRefusals(t *testing.T) {
	w := newWorld(t, 1)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.set.Namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	must(t, w.Client.Create(t.Context(), quota))
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	must(t, w.Client.Status().Update(t.Context(), quota))
	w.create(nil)
	if c := w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionTrue, "WriteFailed"); !strings.Contains(c.Message, "exceeded quota: none") {
		t.Error(c.Message)
	}
	must(t, w.Client.Delete(t.Context(), quota))
	w.images("agent:1")
	w.has(v1alpha1.DaemonSetFailedCreate, corev1.ConditionFalse, "Recovered")
	affinity := func(operator corev1.NodeSelectorOperator) {
		w.edit(func(set *v1alpha1.DaemonSet) {
			set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "test", Operator: operator}},
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
		ObjectMeta: metav1.ObjectMeta{Namespace: w.set.Namespace, Name: "orphan", Labels: map[string]string{"app": "agent"}},
		Spec:       *w.set.Spec.Template.Spec.DeepCopy(),
	}
	orphan.Spec.NodeName = w.node(0)
	must(t, w.Client.Create(t.Context(), orphan))
	w.create(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteDaemonSetStrategyType })
	w.until("one pod remains", func() error {
		pods := w.on(0)
		if len(pods) != 1 || metav1.GetControllerOf(&pods[0]) == nil {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	pod := w.on(0)[0]
	before := pod.DeepCopy()
	pod.Labels["app"] = "other"
	must(t, w.Client.Patch(t.Context(), &pod, client.MergeFrom(before)))
	w.until("the pod is released and replaced", func() error {
		pods := w.on(0)
		if len(pods) != 2 || (metav1.GetControllerOf(&pods[0]) == nil) == (metav1.GetControllerOf(&pods[1]) == nil) {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
}
