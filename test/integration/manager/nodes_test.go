// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// noPlan waits until the node has no NodePodProbe.
func (w *world) noPlan(node string) {
	w.Helper()
	w.Gone(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}})
}

// otherPlan waits until the node has a NodePodProbe with another UID.
func (w *world) otherPlan(before *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	w.Helper()
	var npp *v1alpha1.NodePodProbe
	w.Until("node "+before.Name+" has another NodePodProbe", func() (err error) {
		npp, err = w.getPlan(w.Context(), before.Name)
		return errors.Join(err, await.ErrorIf(npp.UID == before.UID, "it has the same"))
	})
	return npp
}

func TestNodes(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "virtual", Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet},
	}}
	w.Create(virtual)
	w.nodes = append(w.nodes, virtual.Name)
	w.node("real")
	w.settle(1)
	w.noPlan("virtual")

	npp := w.storedPlan("real")
	node := &corev1.Node{}
	w.Must(w.Client.Get(t.Context(), types.NamespacedName{Name: "real"}, node))
	owner := metav1.GetControllerOf(npp)
	if owner == nil || owner.Kind != "Node" || owner.UID != node.UID || owner.BlockOwnerDeletion != nil {
		t.Errorf("owner %+v, want the node, without blockOwnerDeletion", owner)
	}

	label := func(value string) {
		body := fmt.Sprintf(`{"metadata":{"labels":{"type":%s}}}`, value)
		w.Patch(node, "%s", body)
	}
	label(`"virtual-kubelet"`)
	w.noPlan("real")
	label("null")
	w.otherPlan(npp)

	w.Delete(node)
	w.noPlan("real")
}

func TestMarkerEdited(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.pod("a", w.node("edited"))
	marker := w.marker(builders.Marker(w.Namespace, "web").
		Probe(builders.Probe("one").Label(succeeded, "old", "1").Condition("game.io/one")).
		Probe(builders.Probe("two").Label(succeeded, "two", "2")))
	w.planned("edited", "a/web#one", "a/web#two")
	w.report("edited", states{"web#one": succeeded, "web#two": succeeded})
	w.marked("a", "label old=1", "label two=2", "condition game.io/one=True")

	// The edit renames policy keys, removes a probe, adds a probe and changes times.
	edited := builders.Marker(w.Namespace, "web").
		Probe(builders.Probe("one").Label(succeeded, "new", "1").Times(7, 3)).
		Probe(builders.Probe("three").Label(succeeded, "three", "3")).Build()
	w.Until("the edit is stored", func() error {
		w.Get(marker)
		marker.Spec = edited.Spec
		return w.Client.Update(t.Context(), marker)
	})
	w.marked("a", "label new=1")
	w.planned("edited", "a/web#one", "a/web#three")
	npp := w.storedPlan("edited")
	if probe := npp.Spec.PodProbes[0].Probes[0].Probe; probe.PeriodSeconds != 7 || probe.TimeoutSeconds != 3 {
		t.Errorf("planned %+v, want a period of 7 and a timeout of 3", probe)
	}
	w.report("edited", states{"web#one": succeeded, "web#three": succeeded})
	w.marked("a", "label new=1", "label three=3")

	// The annotation about messages is not part of the generation.
	messages := func(value string, want v1alpha1.MessageUpdates, reason string) {
		w.Helper()
		w.Patch(marker, `{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.MessageUpdatesAnnotationKey, value)
		w.markerShows(marker.Name, fmt.Sprintf("annotation %s: messageUpdates %q, reason %s", value, want, reason), func(m *v1alpha1.PodProbeMarker) error {
			probes := w.storedPlan("edited").Spec.PodProbes[0].Probes
			condition := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProbesResolved)
			return await.ErrorIf(probes[0].MessageUpdates != want || probes[1].MessageUpdates != want || condition == nil || condition.Reason != reason,
				"probes %+v, condition %+v", probes, condition)
		})
	}
	messages(`"Immediate"`, v1alpha1.MessageUpdatesImmediate, "Resolved")
	messages(`"Immediately"`, "", "InvalidAnnotation")
	messages("null", "", "Resolved")
	w.marked("a", "label new=1", "label three=3")
}

// TestPlanIsRestored checks that the plan stays in ProbePlans, whatever others write, delete or change.
func TestPlanIsRestored(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	node := w.node("restored-plan")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "idle", "true")))
	w.pod("a", node)
	w.planned(node, "a/web#p")
	stored := func() {
		w.Helper()
		npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
		w.Shows(npp, "the plan is in ProbePlans", func() error { return await.ErrorIf(!slicing.IsSliced(npp), "%+v", npp) })
		w.planned(node, "a/web#p")
	}
	stored()
	w.report(node, states{"web#p": succeeded})
	w.marked("a", "label idle=true")
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	w.Patch(npp, `{"spec":{"podProbes":[{"namespace":"ns","name":"other","uid":"other","IP":""}]}}`)
	stored()
	w.marked("a", "label idle=true")
	w.Must(w.Client.DeleteAllOf(w.Context(), &seamarkv1alpha1.ProbePlan{}, client.MatchingFields{"nodeName": node}))
	stored()
	slice := &seamarkv1alpha1.ProbePlan{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}}
	w.Patch(slice, `{"pods":null}`)
	stored()
	w.Shows(npp, "the reference is that of the new ProbePlans", func() error {
		slices, err := gather.Reader{Client: w.Client}.ProbePlans(t.Context(), node)
		other := npp.Annotations[v1alpha1.ProbePlansAnnotationKey] != slicing.FormatReferences(slicing.References(slices))
		return errors.Join(err, await.ErrorIf(other, "%+v", npp))
	})
}

// TestPlanReadsBackAsWritten checks for every handler that the API server stores the plan as
// compiled. A difference would cause a write at each compile.
func TestPlanReadsBackAsWritten(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.node("stored")
	pod := builders.Pod(w.Namespace, "a").Label("app", "game").Node("stored").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 8080})
	_, err := env.CreatePod(t.Context(), w.Client, pod.Build())
	w.Must(err)
	marker := builders.Marker(w.Namespace, "web")
	for i, handler := range handlers() {
		name := fmt.Sprint("p", i)
		marker.Probe(builders.Probe(name).Container("web").Handler(handler).Condition("game.io/" + name))
	}
	w.marker(marker)
	w.planned("stored", "a/web#p0", "a/web#p1", "a/web#p2", "a/web#p3")
	w.matched("web", 1)
	w.settle(1)
	before := w.Requested()
	// A change on the node that does not change the plan.
	w.Patch(pod.Build(), `{"metadata":{"labels":{"other":"1"}}}`)
	w.settle(1)
	after := w.Requested()
	if writes := after.Since(before).Writes("nodepodprobes", "") + after.Since(before).Writes("probeplans", ""); writes > 0 {
		npp := w.storedPlan("stored")
		t.Errorf("%d plan writes although no plan changed; stored plan: %+v", writes, npp.Spec)
	}
}

func handlers() []corev1.ProbeHandler {
	return []corev1.ProbeHandler{
		{Exec: &corev1.ExecAction{Command: []string{"/a"}}},
		{HTTPGet: &corev1.HTTPGetAction{
			Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "A", Value: "b"}},
		}},
		{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
		{GRPC: &corev1.GRPCAction{Port: 9000}},
	}
}
