// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// noPlan waits until the node has no NodePodProbe.
func (w *world) noPlan(node string) {
	w.Helper()
	w.until("node "+node+" has no NodePodProbe", func(ctx context.Context) (string, error) {
		_, err := w.getPlan(ctx, node)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it has one", err
	})
}

// otherPlan waits until the node has a NodePodProbe with another UID.
func (w *world) otherPlan(before *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	w.Helper()
	var npp *v1alpha1.NodePodProbe
	w.until("node "+before.Name+" has another NodePodProbe", func(ctx context.Context) (string, error) {
		var err error
		npp, err = w.getPlan(ctx, before.Name)
		if err == nil && npp.UID == before.UID {
			return "it has the same", nil
		}
		if apierrors.IsNotFound(err) {
			return "it has none", nil
		}
		return "", err
	})
	return npp
}

func TestNodes(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "virtual", Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet},
	}}
	w.must(w.client.Create(t.Context(), virtual))
	w.nodes = append(w.nodes, virtual.Name)
	w.node("real")
	w.settle()
	w.noPlan("virtual")

	npp, err := w.getPlan(t.Context(), "real")
	w.must(err)
	node := &corev1.Node{}
	w.must(w.client.Get(t.Context(), types.NamespacedName{Name: "real"}, node))
	owner := metav1.GetControllerOf(npp)
	if owner == nil || owner.Kind != "Node" || owner.UID != node.UID || owner.BlockOwnerDeletion != nil {
		t.Errorf("owner %+v, want the node, without blockOwnerDeletion", owner)
	}

	label := func(value string) {
		body := fmt.Sprintf(`{"metadata":{"labels":{"type":%s}}}`, value)
		w.must(w.client.Patch(t.Context(), node, env.MergePatch(body)))
	}
	label(`"virtual-kubelet"`)
	w.noPlan("real")
	label("null")
	w.otherPlan(npp)

	w.must(w.client.Delete(t.Context(), node))
	w.noPlan("real")
}

func TestMarkerEdited(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.pod("a", w.node("edited"))
	marker := w.marker(builders.Marker(w.namespace, "web").
		Probe(builders.Probe("one").Label(succeeded, "old", "1").Condition("game.io/one")).
		Probe(builders.Probe("two").Label(succeeded, "two", "2")))
	w.planned("edited", "a/web#one", "a/web#two")
	w.report("edited", states{"web#one": succeeded, "web#two": succeeded})
	w.marked("a", "label old=1", "label two=2", "condition game.io/one=True")

	// The edit renames policy keys, removes a probe, adds a probe and changes times.
	edited := builders.Marker(w.namespace, "web").
		Probe(builders.Probe("one").Label(succeeded, "new", "1").Times(7, 3)).
		Probe(builders.Probe("three").Label(succeeded, "three", "3")).Build()
	w.until("the edit is stored", func(ctx context.Context) (string, error) {
		current, err := w.getMarker(ctx, marker.Name)
		if err != nil {
			return "", err
		}
		current.Spec = edited.Spec
		err = w.client.Update(ctx, current)
		if apierrors.IsConflict(err) {
			return "a conflict", nil
		}
		return "", err
	})
	w.marked("a", "label new=1")
	w.planned("edited", "a/web#one", "a/web#three")
	npp, err := w.getPlan(t.Context(), "edited")
	w.must(err)
	if probe := npp.Spec.PodProbes[0].Probes[0].Probe; probe.PeriodSeconds != 7 || probe.TimeoutSeconds != 3 {
		t.Errorf("planned %+v, want a period of 7 and a timeout of 3", probe)
	}
	w.report("edited", states{"web#one": succeeded, "web#three": succeeded})
	w.marked("a", "label new=1", "label three=3")

	// The annotation about messages is not part of the generation.
	messages := func(value string, want v1alpha1.MessageUpdates, reason string) {
		w.Helper()
		w.must(w.client.Patch(t.Context(), marker, env.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.MessageUpdatesAnnotationKey, value))))
		w.until(fmt.Sprintf("annotation %s: messageUpdates %q, reason %s", value, want, reason), func(ctx context.Context) (string, error) {
			npp, err := w.getPlan(ctx, "edited")
			if err != nil {
				return "", err
			}
			current, err := w.getMarker(ctx, marker.Name)
			if err != nil {
				return "", err
			}
			condition := meta.FindStatusCondition(current.Status.Conditions, v1alpha1.ConditionProbesResolved)
			if probes := npp.Spec.PodProbes[0].Probes; probes[0].MessageUpdates != want || probes[1].MessageUpdates != want || condition == nil || condition.Reason != reason {
				return fmt.Sprintf("probes %+v, condition %+v", probes, condition), nil
			}
			return "", nil
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
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "idle", "true")))
	w.pod("a", node)
	w.planned(node, "a/web#p")
	stored := func() {
		w.Helper()
		w.until("the plan is in ProbePlans", func(ctx context.Context) (string, error) {
			npp := &v1alpha1.NodePodProbe{}
			err := w.client.Get(ctx, client.ObjectKey{Name: node}, npp)
			if err != nil || slicing.IsSliced(npp) {
				return "", err
			}
			return fmt.Sprintf("%+v", npp), nil
		})
		w.planned(node, "a/web#p")
	}
	stored()
	w.report(node, states{"web#p": succeeded})
	w.marked("a", "label idle=true")
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	w.must(w.client.Patch(w.Context(), npp, env.MergePatch(`{"spec":{"podProbes":[{"namespace":"ns","name":"other","uid":"other","IP":""}]}}`)))
	stored()
	w.marked("a", "label idle=true")
	w.must(w.client.DeleteAllOf(w.Context(), &seamarkv1alpha1.ProbePlan{}, client.MatchingFields{"nodeName": node}))
	stored()
	slice := &seamarkv1alpha1.ProbePlan{ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}}
	w.must(w.client.Patch(w.Context(), slice, env.MergePatch(`{"pods":null}`)))
	stored()
	w.until("the reference is that of the new ProbePlans", func(ctx context.Context) (string, error) {
		npp := &v1alpha1.NodePodProbe{}
		err := w.client.Get(ctx, client.ObjectKey{Name: node}, npp)
		slices, listed := gather.Reader{Client: w.client}.ProbePlans(ctx, node)
		if err = errors.Join(err, listed); err != nil {
			return "", err
		}
		if npp.Annotations[v1alpha1.ProbePlansAnnotationKey] == slicing.FormatReferences(slicing.References(slices)) {
			return "", nil
		}
		return fmt.Sprintf("%+v", npp), nil
	})
}

// TestPlanReadsBackAsWritten checks for every handler that the API server stores the plan as
// compiled. A difference would cause a write at each compile.
func TestPlanReadsBackAsWritten(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.node("stored")
	pod := builders.Pod(w.namespace, "a").Label("app", "game").Node("stored").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 8080})
	_, err := env.CreatePod(t.Context(), w.client, pod.Build())
	w.must(err)
	marker := builders.Marker(w.namespace, "web")
	for i, handler := range handlers() {
		name := fmt.Sprint("p", i)
		marker.Probe(builders.Probe(name).Container("web").Handler(handler).Condition("game.io/" + name))
	}
	w.marker(marker)
	w.planned("stored", "a/web#p0", "a/web#p1", "a/web#p2", "a/web#p3")
	w.matched("web", 1)
	w.settle()
	before, err := w.env.Requests(t.Context())
	w.must(err)
	// A change on the node that does not change the plan.
	w.must(w.client.Patch(t.Context(), pod.Build(), env.MergePatch(`{"metadata":{"labels":{"other":"1"}}}`)))
	w.settle()
	after, err := w.env.Requests(t.Context())
	w.must(err)
	if writes := after.Since(before).Writes("nodepodprobes", "") + after.Since(before).Writes("probeplans", ""); writes > 0 {
		npp, err := w.getPlan(t.Context(), "stored")
		w.must(err)
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
