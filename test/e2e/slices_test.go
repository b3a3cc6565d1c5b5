// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/follow"
)

// slicesOf returns the slices of the test's pods: by the name of the pod, the slices that have it.
func (s *suite) slicesOf(ctx context.Context) (map[string][]seamarkv1alpha1.ProbeReport, error) {
	list := &seamarkv1alpha1.ProbeReportList{}
	if err := s.Client.List(ctx, list); err != nil {
		return nil, err
	}
	found := map[string][]seamarkv1alpha1.ProbeReport{}
	for _, slice := range list.Items {
		for _, pod := range slice.Pods {
			if pod.Namespace == s.Namespace {
				found[pod.Name] = append(found[pod.Name], slice)
			}
		}
	}
	return found, nil
}

// reportOf returns the entry of the pod in its slice, and the slice.
func (s *suite) reportOf(ctx context.Context, pod string) (*seamarkv1alpha1.PodReport, *seamarkv1alpha1.ProbeReport, error) {
	found, err := s.slicesOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(found[pod]) != 1 {
		return nil, nil, fmt.Errorf("pod %s is in %d ProbeReports, want 1", pod, len(found[pod]))
	}
	slice := found[pod][0]
	i := slices.IndexFunc(slice.Pods, func(p seamarkv1alpha1.PodReport) bool { return p.Namespace == s.Namespace && p.Name == pod })
	return &slice.Pods[i], &slice, nil
}

// inSlices returns a check that each pod has an entry with the state, in the slices of its node.
func (s *suite) inSlices(state appsv1alpha1.ProbeState, pods ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, pod := range pods {
			report, slice, err := s.reportOf(ctx, pod)
			if err != nil {
				return err
			}
			if node := s.getPod(pod).Spec.NodeName; slice.NodeName != node || report.UID != string(s.getPod(pod).UID) {
				return fmt.Errorf("pod %s on node %s: %s of node %s has %+v", pod, node, slice.Name, slice.NodeName, report)
			}
			if len(report.Probes) == 0 || slices.ContainsFunc(report.Probes, func(p appsv1alpha1.ContainerProbeState) bool { return p.State != state }) {
				return fmt.Errorf("pod %s: %s has %+v, want %s", pod, slice.Name, report.Probes, state)
			}
		}
		return nil
	}
}

// writes records the writes of ProbeReports, and of the status of NodePodProbes.
type writes struct {
	mu sync.Mutex
	// slices has one entry for each created or modified ProbeReport: "MODIFIED node-1.0".
	slices []string
	// statuses has the names of NodePodProbes whose status was written while the generation in
	// force stayed the same.
	statuses []string
}

// watchWrites records until the test ends.
func (s *suite) watchWrites() *writes {
	s.Helper()
	w := &writes{}
	reports, plans := &seamarkv1alpha1.ProbeReportList{}, &appsv1alpha1.NodePodProbeList{}
	cluster.Must(s, s.Client.List(s.Context(), reports))
	cluster.Must(s, s.Client.List(s.Context(), plans))
	stored := map[string][]seamarkv1alpha1.PodReport{}
	for _, slice := range reports.Items {
		stored[slice.Name] = slice.Pods
	}
	forces := map[string]appsv1alpha1.NodePodProbeStatus{}
	for _, plan := range plans.Items {
		forces[plan.Name] = plan.Status
	}
	s.follow(w, &seamarkv1alpha1.ProbeReportList{}, reports.ResourceVersion, func(event watch.Event) {
		slice := event.Object.(*seamarkv1alpha1.ProbeReport)
		before := stored[slice.Name]
		stored[slice.Name] = slice.Pods
		// Slices without pods are deleted some time after earlier tests.
		if event.Type != watch.Deleted && !ofOthers(before, slice.Pods, s.Namespace) {
			w.slices = append(w.slices, fmt.Sprintf("%s %s", event.Type, slice.Name))
		}
	})
	s.follow(w, &appsv1alpha1.NodePodProbeList{}, plans.ResourceVersion, func(event watch.Event) {
		plan := event.Object.(*appsv1alpha1.NodePodProbe)
		before := forces[plan.Name]
		forces[plan.Name] = plan.Status
		if event.Type == watch.Modified && before.ObservedGeneration == plan.Status.ObservedGeneration && !sameStatus(before, plan.Status) {
			w.statuses = append(w.statuses, plan.Name)
		}
	})
	return w
}

// ofOthers reports whether a write changed the entry of a pod that an earlier test left in the slice,
// and none of the test's own. The removal of such an entry needs no write of its own.
func ofOthers(before, after []seamarkv1alpha1.PodReport, namespace string) bool {
	known := map[string]string{}
	for _, pod := range before {
		known[pod.UID] = fmt.Sprintf("%+v", pod)
	}
	others := false
	for _, pod := range after {
		switch changed := known[pod.UID] != fmt.Sprintf("%+v", pod); {
		case changed && pod.Namespace == namespace:
			return false
		case changed:
			others = true
		}
	}
	return others && len(own(before, namespace)) == len(own(after, namespace))
}

func sameStatus(a, b appsv1alpha1.NodePodProbeStatus) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

// follow calls note for each event after the resource version, until the test ends.
func (s *suite) follow(w *writes, list ctrl.ObjectList, resourceVersion string, note func(watch.Event)) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Since(ctx, s.Client, list, resourceVersion, func(event watch.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		note(event)
	})
	if err != nil {
		cancel()
	}
	cluster.Must(s, err)
	s.Cleanup(func() {
		cancel()
		cluster.Must(s, wait())
	})
}

// take returns the writes since the last call.
func (s *suite) take(w *writes) (ofSlices, ofStatuses []string) {
	s.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	ofSlices, ofStatuses = w.slices, w.statuses
	w.slices, w.statuses = nil, nil
	return ofSlices, ofStatuses
}

// mirrored reports whether an agent keeps a copy of the states in NodePodProbe.status, as after
// an upgrade from a release that reports there.
func (s *suite) mirrored() bool {
	s.Helper()
	plans := &appsv1alpha1.NodePodProbeList{}
	cluster.Must(s, s.Client.List(s.Context(), plans))
	return slices.ContainsFunc(plans.Items, func(plan appsv1alpha1.NodePodProbe) bool { return len(plan.Status.PodProbeStatuses) > 0 })
}

// contents returns the test's pods in all slices that have one, by the name of the slice. It omits
// lastProbeTime, which a slice that is written again may have from a later run, and the order of the
// pods.
func (s *suite) contents(ctx context.Context) (map[string]string, error) {
	found, err := s.slicesOf(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, ofPod := range found {
		for _, slice := range ofPod {
			pods := own(slice.DeepCopy().Pods, s.Namespace)
			slices.SortFunc(pods, func(a, b seamarkv1alpha1.PodReport) int { return strings.Compare(a.Name, b.Name) })
			for i := range pods {
				for j := range pods[i].Probes {
					pods[i].Probes[j].LastProbeTime = metav1.Time{}
				}
			}
			all[slice.Name] = fmt.Sprintf("%+v", pods)
		}
	}
	return all, nil
}

// own returns the entries of the pods in the namespace.
func own(pods []seamarkv1alpha1.PodReport, namespace string) []seamarkv1alpha1.PodReport {
	return slices.DeleteFunc(slices.Clone(pods), func(p seamarkv1alpha1.PodReport) bool { return p.Namespace != namespace })
}

// restored waits until the slices have the pods that they had before.
func (s *suite) restored(what string, before map[string]string) {
	s.Helper()
	s.Eventually(what, func(ctx context.Context) error {
		now, err := s.contents(ctx)
		if err != nil {
			return err
		}
		if !maps.Equal(now, before) {
			return fmt.Errorf("slices %v, want %v", now, before)
		}
		return nil
	})
}
