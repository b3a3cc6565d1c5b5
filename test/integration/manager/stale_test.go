// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// startWithAgents runs a manager that knows the namespace of the agents.
func startWithAgents(t *testing.T, e *env.Env) (stop func()) {
	t.Helper()
	return program.StartManager(t, manager.Options{Config: e.Component(t, manager.Name), Namespace: env.SystemNamespace, HealthProbeBindAddress: "0"})
}

// setReady sets the condition Ready of a node, which the kubelet or the node controller writes.
func (w *world) setReady(node string, status corev1.ConditionStatus, since time.Duration) {
	w.Helper()
	object := &corev1.Node{}
	w.Must(w.Client.Get(w.Context(), types.NamespacedName{Name: node}, object))
	object.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-since)),
	}}
	w.UpdateStatus(object)
}

// agent creates the pod of an agent.
func (w *world) agent(namespace, name, node string) *corev1.Pod {
	w.Helper()
	agent := builders.Pod(namespace, name).Label("app.kubernetes.io/name", "seamark").Label("app.kubernetes.io/component", "agent").Node(node).Build()
	agent.Spec.ServiceAccountName = "seamark-agent"
	created, err := env.CreatePod(w.Context(), w.Client, agent)
	w.Must(err)
	w.setAgentReady(created, corev1.ConditionTrue, 0)
	return created
}

func (w *world) setAgentReady(pod *corev1.Pod, status corev1.ConditionStatus, since time.Duration) {
	w.Helper()
	w.Get(pod)
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-since)),
	})
	w.UpdateStatus(pod)
}

// stale waits until the pod has only the condition of a stale state, and returns it.
func (w *world) stale(name string) (condition corev1.PodCondition) {
	w.Helper()
	w.marked(name, "condition game.io/primary=Unknown")
	w.Until("pod "+name+" says that its state is stale", func() error {
		conditions := w.stored(name).Status.Conditions
		i := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool {
			return c.Type == "game.io/primary" && c.Reason == v1alpha1.ReasonStale
		})
		if i < 0 {
			return errors.New("it does not")
		}
		condition = conditions[i]
		return nil
	})
	return condition
}

// TestStaleStates loses a node, its agent, and the Node object. The times of conditions are in the past, so
// that states are stale at once.
func TestStaleStates(t *testing.T) {
	const long = time.Hour
	e := servers.Parallel(t)
	stop := startWithAgents(t, e)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	restart := func() {
		t.Helper()
		stop()
		stop = startWithAgents(t, e)
	}
	node := w.node("lost")
	w.setReady(node, corev1.ConditionTrue, long)
	agent := w.agent(env.SystemNamespace, "agent-1", node)
	w.pod("a", node)
	w.pod("b", node)
	w.marker(builders.Marker(w.Namespace, "web").
		Probe(builders.Probe("primary").Label(succeeded, "role", "primary").Condition("game.io/primary").StaleAfter(10)))
	w.marker(builders.Marker(w.Namespace, "other").Probe(builders.Probe("idle").Label(succeeded, "idle", "true")).Selector("app", "game"))
	w.planned(node, "a/other#idle", "a/web#primary", "b/other#idle", "b/web#primary")
	w.report(node, states{"web#primary": succeeded})
	primary := []string{"label role=primary", "condition game.io/primary=True"}
	w.marked("a", primary...)

	w.setReady(node, corev1.ConditionUnknown, long)
	before := w.stale("a")
	w.stale("b")
	w.settle(3)
	version := w.versions()["Pod a"]
	restart()
	w.settle(3)
	if after := w.versions()["Pod a"]; after != version {
		t.Errorf("a restart changed the pod: condition %+v before, %+v after", before, w.stale("a"))
	}
	w.setReady(node, corev1.ConditionTrue, 0)
	w.marked("a", primary...)
	w.marked("b", primary...)

	// A pod of a tenant is not an agent.
	w.agent(w.Namespace, "agent-2", node)
	w.setAgentReady(agent, corev1.ConditionFalse, long)
	w.stale("a")
	w.Delete(agent, client.GracePeriodSeconds(0))
	w.settle(1)
	// Nothing has the time at which the pod of the agent was deleted.
	restart()
	w.settle(3)
	w.stale("a")
	agent = w.agent(env.SystemNamespace, "agent-3", node)
	defer func() {
		w.Must(client.IgnoreNotFound(w.Client.Delete(context.Background(), agent, client.GracePeriodSeconds(0))))
	}()
	w.marked("a", primary...)

	// The reports of a node that is gone are deleted.
	w.setAgentReady(agent, corev1.ConditionFalse, long)
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	w.noPlan(node)
	w.stale("a")
	w.settle(1)
	w.stale("a")
}
