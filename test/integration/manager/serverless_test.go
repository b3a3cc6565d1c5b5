// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

const (
	probesJSON        = `[{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/idle"}]`
	probesAnnotation  = "annotation kruise.io/podprobe=" + probesJSON
	markersAnnotation = "annotation kruise.io/podprobemarker-list=game"
)

func startServerless(t testing.TB, e *env.Env) (stop func()) {
	t.Helper()
	return program.StartManager(t, manager.Options{Config: e.Component(t, manager.Name), Serverless: true})
}

// newServerlessWorld starts a manager with the feature gate enabled.
func newServerlessWorld(t *testing.T) *world {
	t.Helper()
	e := servers.Parallel(t)
	startServerless(t, e)
	w := newWorldWithoutManager(t, e)
	t.Cleanup(w.clean)
	return w
}

func (w *world) virtualNode(name string) string {
	w.Helper()
	w.Must(w.Client.Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet},
	}}))
	w.nodes = append(w.nodes, name)
	return name
}

// provide writes the pod's condition as a provider does, with its own field manager.
func (w *world) provide(pod, conditionType string, status corev1.ConditionStatus) {
	w.Helper()
	found := w.stored(pod)
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.PodConditionType(conditionType), Status: status, Message: "by the provider",
		LastProbeTime: at(), LastTransitionTime: at(),
	}}}})
	w.Must(err)
	w.Must(w.Client.Status().Patch(w.Context(), found, client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner("provider")))
}

// ownsNoCondition checks that Seamark owns no condition of the pod.
func (w *world) ownsNoCondition(name string) {
	w.Helper()
	pod := w.stored(name)
	for _, entry := range pod.ManagedFields {
		if entry.Manager == v1alpha1.FieldManager && strings.Contains(entry.FieldsV1.GetRawString(), "f:conditions") {
			w.Errorf("Seamark owns conditions of pod %s: %s", name, entry.FieldsV1.GetRawString())
		}
	}
}

func TestProviderProbes(t *testing.T) {
	w := newServerlessWorld(t)
	w.pod("a", w.virtualNode("vk"))
	marker := w.marker(builders.Marker(w.Namespace, "game").Probe(documented()).
		Probe(builders.Probe("bare").Label(succeeded, "bare", "true")))
	w.marked("a", probesAnnotation, markersAnnotation)
	w.matched("game", 1)
	w.condition("game", v1alpha1.ConditionProbesResolved, "ConditionTypeMissing",
		`Probe "bare": podConditionType is required for pods on virtual nodes (1 of 1 matched pods, such as a).`)

	idle := []string{
		probesAnnotation, markersAnnotation, "label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10",
		"condition game.io/idle=True",
	}
	busy := []string{
		probesAnnotation, markersAnnotation, "label gameserver-idle=false", "annotation controller.kubernetes.io/pod-deletion-cost=10",
		"condition game.io/idle=False",
	}
	w.provide("a", "game.io/idle", corev1.ConditionTrue)
	w.marked("a", idle...)
	w.provide("a", "game.io/idle", corev1.ConditionFalse)
	w.marked("a", busy...)
	w.provide("a", "game.io/idle", corev1.ConditionUnknown)
	w.marked("a", probesAnnotation, markersAnnotation, "condition game.io/idle=Unknown")
	w.provide("a", "game.io/idle", corev1.ConditionTrue)
	w.marked("a", idle...)
	w.unchanged("a", idle...)
	w.ownsNoCondition("a")
	if _, err := w.getPlan(t.Context(), "vk"); !apierrors.IsNotFound(err) {
		t.Errorf("get the NodePodProbe of a virtual node: error %v, want not found", err)
	}

	// An edit reaches the provider, and no mark changes.
	w.Must(w.Client.Patch(t.Context(), marker, env.MergePatch(`{"spec":{"probes":[{"name":"Idle","containerName":"main",`+
		`"probe":{"exec":{"command":["/probe"]},"periodSeconds":7},"podConditionType":"game.io/idle",`+
		`"markerPolicy":[{"state":"Succeeded","labels":{"gameserver-idle":"true"}}]}]}}`)))
	edited := "annotation kruise.io/podprobe=" + strings.Replace(probesJSON, `]}}`, `]},"periodSeconds":7}`, 1)
	w.marked("a", edited, markersAnnotation, "label gameserver-idle=true", "condition game.io/idle=True")

	w.Delete(w.markerNamed("game"))
	w.gone("game")
	// With the marker, all its marks are removed. The condition belongs to the provider.
	pod := w.stored("a")
	if got := strings.Join(marks(pod), ", "); got != "condition game.io/idle=True" {
		t.Errorf("the marker is gone and the pod is marked %s", got)
	}
}

func TestNodeBecomesVirtualAndBack(t *testing.T) {
	w := newServerlessWorld(t)
	w.pod("a", w.node("changing"))
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.planned("changing", "a/game#Idle")
	w.report("changing", states{"game#Idle": succeeded})
	idle := []string{"label gameserver-idle=true", "annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True"}
	busy := []string{"label gameserver-idle=false", "annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False"}
	w.marked("a", idle...)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "changing"}}
	w.Patch(node, `{"metadata":{"labels":{"type":"virtual-kubelet"}}}`)
	w.marked("a", append(idle, probesAnnotation, markersAnnotation)...)
	w.unchanged("a", append(idle, probesAnnotation, markersAnnotation)...)
	w.provide("a", "game.io/idle", corev1.ConditionFalse)
	w.marked("a", append(busy, probesAnnotation, markersAnnotation)...)
	w.unchanged("a", append(busy, probesAnnotation, markersAnnotation)...)

	w.Patch(node, `{"metadata":{"labels":{"type":null}}}`)
	w.planned("changing", "a/game#Idle")
	w.marked("a", busy...)
	w.report("changing", states{"game#Idle": succeeded})
	w.marked("a", idle...)
}

func TestServerlessRestartAndChangesWhileDown(t *testing.T) {
	e := servers.Parallel(t)
	stop := startServerless(t, e)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	w.virtualNode("vk-restart")
	for _, name := range []string{"a", "ended"} {
		w.pod(name, "vk-restart")
	}
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	for _, name := range []string{"a", "ended"} {
		w.marked(name, probesAnnotation, markersAnnotation)
		w.provide(name, "game.io/idle", corev1.ConditionTrue)
		w.marked(
			name, probesAnnotation, markersAnnotation, "label gameserver-idle=true",
			"annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=True",
		)
	}
	ended := w.stored("ended")
	w.Must(w.Client.Status().Patch(t.Context(), ended, env.MergePatch(`{"status":{"phase":"Succeeded"}}`)))
	w.matched("game", 1)
	w.settle(3)
	stop()

	before := w.Requested()
	stop = startServerless(t, e)
	w.settle(3)
	if writes := w.writes(before); len(writes) > 0 {
		t.Errorf("a restart wrote: %v", writes)
	}
	stop()

	w.provide("a", "game.io/idle", corev1.ConditionFalse)
	w.provide("ended", "game.io/idle", corev1.ConditionFalse)
	w.pod("new", "vk-restart")
	startServerless(t, e)
	w.marked(
		"a", probesAnnotation, markersAnnotation, "label gameserver-idle=false",
		"annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False",
	)
	w.marked("new", probesAnnotation, markersAnnotation)
	w.unchanged(
		"ended", probesAnnotation, markersAnnotation, "label gameserver-idle=true",
		"annotation controller.kubernetes.io/pod-deletion-cost=-10", "condition game.io/idle=False",
	)
}

// TestGateOff checks that by default nothing is written to a pod on a virtual node.
func TestGateOff(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.pod("a", w.virtualNode("vk-off"))
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.matched("game", 1)
	w.provide("a", "game.io/idle", corev1.ConditionTrue)
	w.unchanged("a", "condition game.io/idle=True")
}

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
