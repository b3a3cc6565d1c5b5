// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs the manager against a real API server, with the rights of its
// service account. Nodes and pods are plain objects without kubelets, and the tests write the
// agents' reports.
package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// servers are the API servers of the package. Each test needs one for itself, because a manager acts
// on all namespaces.
var servers env.Pool

func TestMain(m *testing.M) { servers.Main(m) }

// world is the fixture of one test: a namespace and the nodes that the test creates.
type world struct {
	*env.World
	nodes []string
}

// newWorld starts a manager for the test. The cleanup at the end relies on it.
func newWorld(t testing.TB, e *env.Env) *world {
	t.Helper()
	startManager(t, e)
	w := newWorldWithoutManager(t, e)
	t.Cleanup(w.clean)
	return w
}

// newWorldWithoutManager is for tests that start managers themselves. They must defer clean,
// which needs a running manager.
func newWorldWithoutManager(t testing.TB, e *env.Env) *world {
	t.Helper()
	return &world{World: env.NewWorld(t, e)}
}

// clean deletes everything that the manager of another test would act on.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	w.Clean(&corev1.Pod{}, &v1alpha1.PodProbeMarker{})
	for _, name := range w.nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(w.Client.Delete(ctx, node)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var markers v1alpha1.PodProbeMarkerList
		var plans v1alpha1.NodePodProbeList
		var planSlices seamarkv1alpha1.ProbePlanList
		var slices seamarkv1alpha1.ProbeReportList
		if err := w.Client.List(ctx, &markers, client.InNamespace(w.Namespace)); err != nil {
			return false, err
		}
		err := errors.Join(w.Client.List(ctx, &plans), w.Client.List(ctx, &planSlices), w.Client.List(ctx, &slices))
		return len(markers.Items)+len(plans.Items)+len(planSlices.Items)+len(slices.Items) == 0, err
	})
	if err != nil {
		w.Errorf("wait until the markers, plans and reports are deleted: %v", err)
	}
}

// startManager runs a manager until the test ends or the returned function is called.
func startManager(t testing.TB, e *env.Env) (stop func()) {
	t.Helper()
	return program.StartManager(t, manager.Options{Config: e.Component(t, manager.Name)})
}

// node creates a node and waits for its NodePodProbe.
func (w *world) node(name string) string {
	w.Helper()
	w.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.nodes = append(w.nodes, name)
	w.Until("node "+name+" has a NodePodProbe", func() error {
		_, err := w.getPlan(w.Context(), name)
		return err
	})
	return name
}

// getPlan returns the NodePodProbe of the node with the whole plan.
func (w *world) getPlan(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	return planOf(ctx, w.Client, node)
}

func planOf(ctx context.Context, c client.Client, node string) (*v1alpha1.NodePodProbe, error) {
	npp, err := gather.Reader{Client: c}.NodePlan(ctx, node)
	if err == nil && npp == nil {
		npp, err = &v1alpha1.NodePodProbe{}, apierrors.NewNotFound(v1alpha1.GroupVersion().WithResource("nodepodprobes").GroupResource(), node)
	}
	return npp, err
}

// pod creates a running pod with the label app=game on the node.
func (w *world) pod(name, node string) *corev1.Pod {
	w.Helper()
	pod, err := env.CreatePod(w.Context(), w.Client, builders.Pod(w.Namespace, name).Label("app", "game").Node(node).Build())
	w.Must(err)
	return pod
}

// stored returns a pod.
func (w *world) stored(name string) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: w.Meta(name)}
	w.Get(pod)
	return pod
}

// storedPlan returns the NodePodProbe of the node with the whole plan.
func (w *world) storedPlan(node string) *v1alpha1.NodePodProbe {
	w.Helper()
	npp, err := w.getPlan(w.Context(), node)
	w.Must(err)
	return npp
}

func (w *world) marker(builder *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	w.Helper()
	marker := builder.Unsaved().Build()
	w.Create(marker)
	return marker
}

// gone waits until the marker is deleted.
func (w *world) gone(marker string) {
	w.Helper()
	w.Gone(w.markerNamed(marker))
}

// markerNamed returns a marker to delete or patch, by its name.
func (w *world) markerNamed(marker string) *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{ObjectMeta: w.Meta(marker)}
}

// at returns the time of all states that the tests report.
func at() metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000, 0)) }

// states holds the states to report, by probe (marker#probe).
type states map[string]v1alpha1.ProbeState

// report writes a report as the node's agent does. It contains the states of all planned
// probes that have one.
func (w *world) report(node string, all states) {
	w.Helper()
	w.Must(report(w.Context(), w.Client, node, func(probe string) v1alpha1.ProbeState { return all[probe] }))
}

// report writes the ProbeReports of the node that change, and then the generation that is in force
// unless it is the reported one.
func report(ctx context.Context, c client.Client, node string, state func(probe string) v1alpha1.ProbeState) error {
	npp, err := planOf(ctx, c, node)
	if err != nil {
		return fmt.Errorf("read the plan of node %s: %w", node, err)
	}
	var stored seamarkv1alpha1.ProbeReportList
	if err := c.List(ctx, &stored, client.MatchingFields{"nodeName": node}); err != nil {
		return fmt.Errorf("list the ProbeReports of node %s: %w", node, err)
	}
	for name, pods := range placed(npp, stored.Items, state) {
		i := slices.IndexFunc(stored.Items, func(s seamarkv1alpha1.ProbeReport) bool { return s.Name == name })
		if i >= 0 && equality.Semantic.DeepEqual(stored.Items[i].Pods, pods) {
			continue
		}
		if err := writeSlice(ctx, c, npp, name, pods); err != nil {
			return err
		}
	}
	if npp.Status.ProbeReports && npp.Status.ObservedGeneration == npp.Generation && len(npp.Status.PodProbeStatuses) == 0 {
		return nil
	}
	return writeStatus(ctx, c, npp, map[string]any{
		"observedGeneration": npp.Generation, "pods": len(npp.Spec.PodProbes), "probeReports": true, "podProbeStatuses": nil,
	})
}

// maxPods is the number of pods in a ProbeReport.
const maxPods = 8

// placed returns the planned pods that have states or have a place in a stored ProbeReport, by the
// name of the ProbeReport.
func placed(
	npp *v1alpha1.NodePodProbe, stored []seamarkv1alpha1.ProbeReport, state func(probe string) v1alpha1.ProbeState,
) map[string][]seamarkv1alpha1.PodReport {
	places := map[string]string{}
	for _, slice := range stored {
		for _, pod := range slice.Pods {
			places[pod.UID] = slice.Name
		}
	}
	all := map[string][]seamarkv1alpha1.PodReport{}
	var added []seamarkv1alpha1.PodReport
	for _, planned := range npp.Spec.PodProbes {
		pod := podReport(planned, state)
		if name, known := places[pod.UID]; known {
			all[name] = append(all[name], pod)
		} else if len(pod.Probes) > 0 {
			added = append(added, pod)
		}
	}
	number := 0
	for _, pod := range added {
		for len(all[sliceName(npp.Name, number)]) >= maxPods {
			number++
		}
		all[sliceName(npp.Name, number)] = append(all[sliceName(npp.Name, number)], pod)
	}
	return all
}

func sliceName(node string, number int) string { return fmt.Sprintf("%s.%d", node, number) }

func podReport(planned v1alpha1.PodProbe, state func(probe string) v1alpha1.ProbeState) seamarkv1alpha1.PodReport {
	pod := seamarkv1alpha1.PodReport{Namespace: planned.Namespace, Name: planned.Name, UID: planned.UID}
	for _, probe := range planned.Probes {
		if s := state(probe.Name); s != "" {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbeState{
				Name: probe.Name, Plan: probe.Plan, State: s, Message: string(s), LastProbeTime: at(), LastTransitionTime: at(),
			})
		}
	}
	return pod
}

// writeSlice replaces the pods of a ProbeReport, which it creates if there is none.
func writeSlice(ctx context.Context, c client.Client, npp *v1alpha1.NodePodProbe, name string, pods []seamarkv1alpha1.PodReport) error {
	slice := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: npp.OwnerReferences}, NodeName: npp.Name, Pods: pods,
	}
	body, err := json.Marshal(map[string]any{"pods": pods, "nodeName": npp.Name})
	if err != nil {
		return fmt.Errorf("encode ProbeReport %s: %w", name, err)
	}
	agent := client.FieldOwner(v1alpha1.AgentFieldManager)
	err = c.Patch(ctx, &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, body), agent)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, slice, agent)
	}
	if err != nil {
		return fmt.Errorf("write ProbeReport %s: %w", name, err)
	}
	return nil
}

func writeStatus(ctx context.Context, c client.Client, npp *v1alpha1.NodePodProbe, status map[string]any) error {
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode the status of node %s: %w", npp.Name, err)
	}
	patch := client.RawPatch(types.MergePatchType, body)
	if err := c.Status().Patch(ctx, npp.DeepCopy(), patch, client.FieldOwner(v1alpha1.AgentFieldManager)); err != nil {
		return fmt.Errorf("write the status of node %s: %w", npp.Name, err)
	}
	return nil
}

// planned waits until the node's plan has exactly these probes, each as pod/marker#probe.
func (w *world) planned(node string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.Until(fmt.Sprintf("the plan of node %s is %v", node, want), func() error {
		npp, err := w.getPlan(w.Context(), node)
		var got []string
		for _, pod := range npp.Spec.PodProbes {
			for _, probe := range pod.Probes {
				got = append(got, pod.Name+"/"+probe.Name)
			}
		}
		slices.Sort(got)
		return errors.Join(client.IgnoreNotFound(err), await.ErrorIf(!slices.Equal(got, want), "the plan is %v", got))
	})
}

// marks returns the labels, annotations and conditions of a pod that the tests use, such as
// "label idle=true" and "condition game.io/idle=True".
func marks(pod *corev1.Pod) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		if key != "app" && !strings.HasPrefix(key, v1alpha1.ExclusiveTicketPrefix) {
			all = append(all, "label "+key+"="+pod.Labels[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		all = append(all, "annotation "+key+"="+pod.Annotations[key])
	}
	for _, c := range pod.Status.Conditions {
		if strings.Contains(string(c.Type), "/") {
			all = append(all, fmt.Sprintf("condition %s=%s", c.Type, c.Status))
		}
	}
	return all
}

// marked waits until the pod has exactly these marks.
func (w *world) marked(pod string, want ...string) {
	w.Helper()
	slices.Sort(want)
	found := &corev1.Pod{ObjectMeta: w.Meta(pod)}
	w.Shows(found, fmt.Sprintf("pod %s has the marks %v", pod, want), func() error {
		got := marks(found)
		slices.Sort(got)
		return await.ErrorIf(!slices.Equal(got, want), "it has %v", got)
	})
}

// unchanged checks that the pod has these marks and is not written for a while, in which the
// manager would have acted many times.
func (w *world) unchanged(pod string, want ...string) {
	w.Helper()
	before := w.stored(pod)
	w.settle(1)
	w.marked(pod, want...)
	after := w.stored(pod)
	if before.ResourceVersion != after.ResourceVersion {
		w.Errorf("pod %s was written: marks %v, then %v", pod, marks(before), marks(after))
	}
}

// settle waits, so many times, for a while in which the manager completes any pending work.
func (w *world) settle(times time.Duration) {
	w.Helper()
	timer := time.NewTimer(times * 700 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
		w.Fatal(w.Context().Err())
	}
}
