// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// at returns the time of all states that the tests report.
func at() metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000, 0)) }

// states holds the states to report, by probe (marker#probe).
type states map[string]v1alpha1.ProbeState

// report writes a report as the node's agent does. It contains the states of all planned
// probes that have one.
func (w *world) report(node string, all states) {
	w.Helper()
	w.must(report(w.Context(), w.client, node, func(probe string) v1alpha1.ProbeState { return all[probe] }))
}

func report(ctx context.Context, c client.Client, node string, state func(probe string) v1alpha1.ProbeState) error {
	npp := &v1alpha1.NodePodProbe{}
	if err := c.Get(ctx, types.NamespacedName{Name: node}, npp); err != nil {
		return fmt.Errorf("read the plan of node %s: %w", node, err)
	}
	status := v1alpha1.NodePodProbeStatus{ObservedGeneration: npp.Generation, Pods: int32(len(npp.Spec.PodProbes))}
	for _, pod := range npp.Spec.PodProbes {
		podStatus := v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		for _, probe := range pod.Probes {
			if s := state(probe.Name); s != "" {
				podStatus.ProbeStates = append(podStatus.ProbeStates, v1alpha1.ContainerProbeState{
					Name: probe.Name, Plan: probe.Plan, State: s, Message: string(s), LastProbeTime: at(), LastTransitionTime: at(),
				})
			}
		}
		if len(podStatus.ProbeStates) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, podStatus)
		}
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode the report of node %s: %w", node, err)
	}
	if err := c.Status().Patch(ctx, npp, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("write the report of node %s: %w", node, err)
	}
	return nil
}

// planned waits until the node's plan has exactly these probes, each as pod/marker#probe.
func (w *world) planned(node string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.until(fmt.Sprintf("the plan of node %s is %v", node, want), func(ctx context.Context) (string, error) {
		npp, err := w.getPlan(ctx, node)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		var got []string
		for _, pod := range npp.Spec.PodProbes {
			for _, probe := range pod.Probes {
				got = append(got, pod.Name+"/"+probe.Name)
			}
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return "", nil
		}
		return fmt.Sprint("the plan is ", got), nil
	})
}

// marks returns the labels, annotations and conditions of a pod that the tests use, such as
// "label idle=true" and "condition game.io/idle=True".
func marks(pod *corev1.Pod) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		if key != "app" {
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
	w.until(fmt.Sprintf("pod %s has the marks %v", pod, want), func(ctx context.Context) (string, error) {
		found, err := w.getPod(ctx, pod)
		if err != nil {
			return "", err
		}
		got := marks(found)
		slices.Sort(got)
		if slices.Equal(got, want) {
			return "", nil
		}
		return fmt.Sprint("it has ", got), nil
	})
}

// unchanged checks that the pod has these marks and is not written for a while, in which the
// manager would have acted many times.
func (w *world) unchanged(pod string, want ...string) {
	w.Helper()
	before, err := w.getPod(w.Context(), pod)
	w.must(err)
	w.settle()
	w.marked(pod, want...)
	after, err := w.getPod(w.Context(), pod)
	w.must(err)
	if before.ResourceVersion != after.ResourceVersion {
		w.Errorf("pod %s was written: marks %v, then %v", pod, marks(before), marks(after))
	}
}

// settle waits for a while in which the manager completes any pending work.
func (w *world) settle() {
	w.Helper()
	timer := time.NewTimer(700 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
		w.Fatal(w.Context().Err())
	}
}
