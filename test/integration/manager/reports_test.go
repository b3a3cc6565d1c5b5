// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// upToDate makes a status one that the agent keeps up to date after a takeover.
func upToDate(status *v1alpha1.NodePodProbeStatus) { status.ProbeReports = true }

// TestTakeoverAndRollback lets an agent take over from one that reports in the status, rolls it back
// and upgrades it again. No step writes to a pod, and after each step its reports take effect.
func TestTakeoverAndRollback(t *testing.T) {
	w := newWorld(t, shared)
	w.node("moved")
	var planned []string
	for i := range maxPods + 2 {
		name := fmt.Sprint("pod-", i)
		w.pod(name, "moved")
		planned = append(planned, name+"/web#p")
	}
	last := fmt.Sprint("pod-", maxPods+1)
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").
		Label(succeeded, "healthy", "true").Label(failed, "healthy", "false").Condition("game.io/healthy")))
	w.planned("moved", planned...)
	healthy := []string{"label healthy=true", "condition game.io/healthy=True"}
	sick := []string{"label healthy=false", "condition game.io/healthy=False"}
	good, bad := states{"web#p": succeeded}, states{"web#p": failed}

	w.reportInStatus("moved", good)
	for i := range maxPods + 2 {
		w.marked(fmt.Sprint("pod-", i), healthy...)
	}

	takeOver := func(all states) {
		w.report("moved", all)
		w.reportInStatus("moved", all, upToDate)
	}
	versions := w.podVersions()
	takeOver(good)
	w.settle()
	w.reportInStatus("moved", good)
	w.settle()
	takeOver(good)
	w.settle()
	w.report("moved", good)
	w.settle()
	if n := len(w.slices("moved")); n != 2 {
		t.Errorf("%d ProbeReports, want 2", n)
	}
	for name, version := range w.podVersions() {
		if versions[name] != version {
			t.Errorf("%s was written", name)
		}
	}

	w.report("moved", bad)
	w.marked(last, sick...)
	w.reportInStatus("moved", good)
	w.marked(last, healthy...)
	// The agent of the earlier release does not write ProbeReports, so they do not matter.
	npp, err := w.getPlan(t.Context(), "moved")
	w.must(err)
	w.must(writeSlice(t.Context(), w.client, npp, "moved.1", nil))
	w.unchanged(last, healthy...)
	w.reportInStatus("moved", bad)
	w.marked("pod-0", sick...)
	w.marked(last, sick...)
}

func (w *world) podVersions() map[string]string {
	w.Helper()
	var pods corev1.PodList
	w.must(w.client.List(w.Context(), &pods, client.InNamespace(w.namespace)))
	versions := map[string]string{}
	for i := range pods.Items {
		versions[pods.Items[i].Name] = pods.Items[i].ResourceVersion
	}
	return versions
}

// TestLostReports deletes and changes ProbeReports as another client. The manager asks the agent once
// to restore them, and no pod loses a mark.
func TestLostReports(t *testing.T) {
	stop := startManager(t, shared)
	w := newWorldWithoutManager(t, shared)
	defer w.clean()
	w.pod("a", w.node("lost"))
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "healthy", "true")))
	w.planned("lost", "a/web#p")
	good := states{"web#p": succeeded}
	w.report("lost", good)
	w.marked("a", "label healthy=true")
	w.settle()

	before, err := w.env.Requests(t.Context())
	w.must(err)
	slice := w.slices("lost")[0]
	w.must(w.client.Delete(t.Context(), &slice))
	w.asked("lost", "lost.0/"+string(slice.UID))
	w.unchanged("a", "label healthy=true")
	if writes := w.writes(before); writes["PATCH nodepodprobes/ 200"] != 1 {
		t.Errorf("writes %v after a deletion, want one of the NodePodProbe", writes)
	}

	w.report("lost", good)
	w.unchanged("a", "label healthy=true")
	before, err = w.env.Requests(t.Context())
	w.must(err)
	slice = w.slices("lost")[0]
	w.must(w.client.Patch(t.Context(), &slice, env.MergePatch(`{"pods":[{"namespace":"ns","name":"b","uid":"c"}]}`), client.FieldOwner("kubectl-edit")))
	w.asked("lost", "lost.0/"+slice.ResourceVersion)
	w.unchanged("a", "label healthy=true")
	if writes := w.writes(before); writes["PATCH nodepodprobes/ 200"] != 1 {
		t.Errorf("writes %v after a change, want one of the NodePodProbe", writes)
	}

	w.report("lost", good)
	w.must(w.client.Patch(t.Context(), &slice, env.MergePatch(`{"pods":null}`), client.FieldOwner("kubectl-edit")))
	w.asked("lost", "lost.0/"+slice.ResourceVersion)
	w.unchanged("a", "label healthy=true")

	// Neither a restart nor another change of the plan repeats the request while the agent is down.
	stop()
	before, err = w.env.Requests(t.Context())
	w.must(err)
	startManager(t, shared)
	w.settle()
	w.settle()
	if writes := w.writes(before); len(writes) > 0 {
		t.Errorf("writes %v after a restart, want none", writes)
	}
	w.pod("b", "lost")
	w.planned("lost", "a/web#p", "b/web#p")
	w.asked("lost", "lost.0/"+slice.ResourceVersion)
	w.report("lost", good)
	w.marked("b", "label healthy=true")
	w.unchanged("a", "label healthy=true")
	w.asked("lost", "lost.0/"+slice.ResourceVersion)
}

// asked waits until the agent is asked to restore its ProbeReports with the value.
func (w *world) asked(node, value string) {
	w.Helper()
	w.until("the agent of node "+node+" is asked to restore "+value, func(ctx context.Context) (string, error) {
		npp, err := w.getPlan(ctx, node)
		if err != nil {
			return "", err
		}
		if got := npp.Annotations[v1alpha1.RestoreReportsAnnotationKey]; got != value {
			return fmt.Sprintf("the annotation is %q", got), nil
		}
		return "", nil
	})
}

// TestReportsWithoutAgent checks that the ProbeReports of a node are deleted when it is deleted or
// becomes a virtual node, and are kept when its NodePodProbe is deleted.
func TestReportsWithoutAgent(t *testing.T) {
	w := newWorld(t, shared)
	w.healthyPod("leaving")
	npp, err := w.getPlan(t.Context(), "leaving")
	w.must(err)
	w.must(w.client.Delete(t.Context(), npp))
	w.otherPlan(npp)
	w.planned("leaving", "a/web#p")
	w.unchanged("a", "label healthy=true")
	if n := len(w.slices("leaving")); n != 1 {
		t.Fatalf("%d ProbeReports after the NodePodProbe was created again, want 1", n)
	}

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	w.must(w.client.Patch(t.Context(), node, env.MergePatch(`{"metadata":{"labels":{"type":"virtual-kubelet"}}}`)))
	w.withoutReports("leaving")
	w.unchanged("a", "label healthy=true")
	w.must(w.client.Patch(t.Context(), node, env.MergePatch(`{"metadata":{"labels":{"type":null}}}`)))
	w.planned("leaving", "a/web#p")
	w.unchanged("a", "label healthy=true")
	w.report("leaving", states{"web#p": failed})
	w.marked("a")

	w.must(w.client.Delete(t.Context(), node))
	w.withoutReports("leaving")
	// A late write of its agent.
	late := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "leaving.0"}, NodeName: "leaving"}
	w.must(w.client.Create(t.Context(), late, client.FieldOwner(v1alpha1.AgentFieldManager)))
	w.withoutReports("leaving")
}

func (w *world) withoutReports(node string) {
	w.Helper()
	w.until("node "+node+" has no ProbeReports", func(context.Context) (string, error) {
		if n := len(w.slices(node)); n > 0 {
			return fmt.Sprintf("it has %d", n), nil
		}
		return "", nil
	})
}
