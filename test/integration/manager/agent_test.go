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

// at is the time of all states that the tests report.
func at() metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000, 0)) }

// states are the states to report: by probe, as marker#probe.
type states map[string]v1alpha1.ProbeState

// report does what the node's agent does: it reports the states of all planned probes
// that have one.
func (w *world) report(node string, all states) {
	w.Helper()
	w.must(report(w.Context(), w.client, node, func(probe string) v1alpha1.ProbeState { return all[probe] }))
}

func report(ctx context.Context, c client.Client, node string, state func(probe string) v1alpha1.ProbeState) error {
	npp := &v1alpha1.NodePodProbe{}
	if err := c.Get(ctx, types.NamespacedName{Name: node}, npp); err != nil {
		return fmt.Errorf("reading the plan of %s: %w", node, err)
	}
	status := v1alpha1.NodePodProbeStatus{ObservedGeneration: npp.Generation, Pods: int32(len(npp.Spec.PodProbes))}
	for _, pod := range npp.Spec.PodProbes {
		podStatus := v1alpha1.PodProbeStatus{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
		for _, probe := range pod.Probes {
			if s := state(probe.Name); s != "" {
				podStatus.ProbeStates = append(podStatus.ProbeStates, v1alpha1.ContainerProbeState{
					Name: probe.Name, State: s, Message: string(s), LastProbeTime: at(), LastTransitionTime: at(),
				})
			}
		}
		if len(podStatus.ProbeStates) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, podStatus)
		}
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the report of %s: %w", node, err)
	}
	if err := c.Status().Patch(ctx, npp, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("reporting for %s: %w", node, err)
	}
	return nil
}

// planned waits until the node's plan has these probes and no others, each given as
// pod/marker#probe.
func (w *world) planned(node string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.until(fmt.Sprintf("node %s plans %v", node, want), func(ctx context.Context) (string, error) {
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
		return fmt.Sprint("it plans ", got), nil
	})
}

// marks are the marks of a pod that the tests speak of, in words: label, annotation and
// condition, such as "label idle=true", "condition game.io/idle=True".
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

// marked waits until the pod has these marks and no others.
func (w *world) marked(pod string, want ...string) {
	w.Helper()
	slices.Sort(want)
	w.until(fmt.Sprintf("pod %s is marked %v", pod, want), func(ctx context.Context) (string, error) {
		found, err := w.getPod(ctx, pod)
		if err != nil {
			return "", err
		}
		got := marks(found)
		slices.Sort(got)
		if slices.Equal(got, want) {
			return "", nil
		}
		return fmt.Sprint("it is marked ", got), nil
	})
}

// steady fails the test if the marks change within a time in which the manager has
// acted many times over.
func (w *world) steady(pod string, want ...string) {
	w.Helper()
	before, err := w.getPod(w.Context(), pod)
	w.must(err)
	w.rest()
	w.marked(pod, want...)
	after, err := w.getPod(w.Context(), pod)
	w.must(err)
	if before.ResourceVersion != after.ResourceVersion {
		w.Errorf("pod %s was written: marks %v, then %v", pod, marks(before), marks(after))
	}
}

// rest lets the manager do whatever it still has to do.
func (w *world) rest() {
	w.Helper()
	timer := time.NewTimer(700 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
		w.Fatal(w.Context().Err())
	}
}
