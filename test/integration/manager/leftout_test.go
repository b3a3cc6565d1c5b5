// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

// large creates three pods with the probes of one marker, which take most of the plan of the node. The
// first probe sets a label.
func (w *world) large(node string) []*corev1.Pod {
	w.Helper()
	handler := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{strings.Repeat("x", 16384)}}}
	marker := builders.Marker(w.namespace, "large").Probe(builders.Probe("p").Label(succeeded, "healthy", "true").Handler(handler))
	for i := range 16 {
		name := fmt.Sprint("large-", i)
		marker.Probe(builders.Probe(name).Label(failed, name, "true").Handler(handler))
	}
	w.marker(marker)
	var pods []*corev1.Pod
	for i := range 3 {
		pods = append(pods, w.pod(fmt.Sprint("pod-", i), node))
	}
	return pods
}

// TestPodThatLosesItsPlace lets another namespace take a part of the plan. The pod that has no place any
// more keeps its mark until the agent runs this plan. Pods that are planned keep theirs even if
// their plan and reports are gone.
func TestPodThatLosesItsPlace(t *testing.T) {
	const node = "full"
	w := newWorld(t, shared)
	w.poll = await.Poll{Interval: 100 * time.Millisecond, Timeout: time.Minute}
	w.node(node)
	pods := w.large(node)
	last := pods[len(pods)-1]
	w.inPlan(node, last, true)
	agent := func() {
		t.Helper()
		w.must(report(t.Context(), w.client, node, func(string) v1alpha1.ProbeState { return succeeded }))
	}
	agent()
	for _, pod := range pods {
		w.marked(pod.Name, "label healthy=true")
	}

	other := newWorldWithoutManager(t, shared)
	other.poll = w.poll
	others := other.large(node)
	w.inPlan(node, last, false)
	w.unchanged(last.Name, "label healthy=true")
	agent()
	w.marked(last.Name)
	w.marked(pods[0].Name, "label healthy=true")

	w.must(w.client.DeleteAllOf(t.Context(), &seamarkv1alpha1.ProbeReport{}))
	npp, err := w.getPlan(t.Context(), node)
	w.must(err)
	w.must(w.client.Delete(t.Context(), npp))
	w.unchanged(pods[0].Name, "label healthy=true")
	w.inPlan(node, pods[0], true)
	agent()
	w.unchanged(pods[0].Name, "label healthy=true")

	// There is room again.
	for _, pod := range others {
		other.must(other.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	}
	other.must(other.client.Delete(t.Context(), other.markerNamed("large")))
	other.gone("large")
	w.inPlan(node, last, true)
	agent()
	w.marked(last.Name, "label healthy=true")
}
