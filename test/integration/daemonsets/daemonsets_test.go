// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestDaemonSets(t *testing.T) {
	stop := start(t, server)
	t.Cleanup(stop)
	for name, test := range map[string]func(t *testing.T){
		"placement":            testPlacement,
		"recreation":           testRecreation,
		"in place":             testInPlace,
		"surge":                testSurge,
		"progressive creation": testProgressive,
		"selector of nodes":    testSelector,
		"paused and on delete": testStopped,
		"hook":                 testHook,
		"unreachable":          testUnreachable,
		"failed pods":          testFailedPods,
		"refusals":             testRefusals,
		"adoption":             testAdoption,
		"pulls before update":  testPreDownload,
		"drain":                testDrain,
		"guard":                testGuard,
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
	w.editNode(2, func(node *corev1.Node) { node.Labels = map[string]string{"world": "other"} })
	w.editNode(0, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	w.images("agent:1", "", "", "agent:1")
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node(2)}})
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
		n := readyNodes(pods)
		return await.ErrorIf(n < 3, "%d nodes have a ready pod", n)
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	stop()
	if want := []string{w.node(3), w.node(2), w.node(1), w.node(0)}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	// A broken image stops after one node, and a rollback needs no other one.
	w.setImage("agent:broken")
	w.until("one node has the broken image", func() error {
		pods := w.on(3)
		return await.ErrorIf(len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:broken", "not yet")
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	w.has(v1alpha1.DaemonSetProgressing, corev1.ConditionTrue, "Updated")
}

// testGuard updates a set while a guard protects the pod that would be the first one.
func testGuard(t *testing.T) {
	w := newWorld(t, 3)
	w.Create(builders.Guard(w.Namespace, "busy", false, "yes"))
	w.create(nil)
	w.images("agent:1", "agent:1", "agent:1")
	busy := w.on(2)[0]
	w.Patch(&busy, `{"metadata":{"labels":{%q:"yes"}}}`, builders.GuardLabel)
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:1")
	w.has(planning.PodsGuarded, corev1.ConditionTrue, "Guarded")
	if kept := w.on(2)[0]; kept.UID != busy.UID {
		t.Errorf("pod %s was replaced", busy.Name)
	}
	w.Patch(&busy, `{"metadata":{"labels":{%q:null}}}`, builders.GuardLabel)
	w.images("agent:2", "agent:2", "agent:2")
	w.has(planning.PodsGuarded, corev1.ConditionFalse, "Recovered")
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
		n := readyNodes(pods)
		return await.ErrorIf(n < 1, "%d nodes have a ready pod", n)
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
		n := readyNodes(pods)
		return await.ErrorIf(n < 4 || active > 6, "%d nodes have a ready pod, and %d pods exist", n, active)
	})
	w.setImage("agent:2")
	w.images("agent:2", "agent:2", "agent:2", "agent:2")
	stop()
	// An old pod that is not ready is replaced at once.
	w.setBroken(0, true)
	w.setImage("agent:3")
	w.until("the new pod of the broken node is alone", func() error {
		pods := w.on(0)
		return await.ErrorIf(len(pods) != 1 || pods[0].Spec.Containers[0].Image != "agent:3", "%d pods", len(pods))
	})
	w.setBroken(0, false)
	w.images("agent:3", "agent:3", "agent:3", "agent:3")
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
	w.Delete(&pod)
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
	// An update is held, too. A rollback clears what the hook has marked.
	w.setImage("agent:2")
	state(pub.LifecycleStatePreparingDelete, false)
	w.setImage("agent:1")
	state(pub.LifecycleStateNormal, true)
	w.taint(1, corev1.Taint{Key: "gone", Effect: corev1.TaintEffectNoExecute})
	state(pub.LifecycleStatePreparingDelete, false)
	pod := w.on(1)[0]
	w.Edit(&pod, func() { delete(pod.Labels, "example.com/hold") })
	w.images("agent:1")
}
