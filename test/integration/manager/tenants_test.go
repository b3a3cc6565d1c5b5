// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestLargestMarker: a tenant whose marker has the maximum size, in as many pods as a node can run, takes
// nothing from another tenant, and both can delete their markers.
func TestLargestMarker(t *testing.T) {
	const pods, probes, commandLength = 110, 32, 16384
	w := newWorld(t, servers.Parallel(t))
	// Reading the largest marker costs the API server as much as many writes.
	w.Poll = await.Poll{Interval: 400 * time.Millisecond, Timeout: 2 * time.Minute}
	node := w.node("shared-by-tenants")
	greedy := builders.Marker(w.Namespace, "greedy")
	for i := range probes {
		name := fmt.Sprint("probe-", i)
		greedy.Probe(builders.Probe(name).Condition("game.io/" + name).Handler(corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{strings.Repeat("x", commandLength)}},
		}))
	}
	w.marker(greedy)
	for i := range pods {
		w.pod(fmt.Sprintf("pod-%03d", i), node)
	}
	w.markerShows("greedy", "the status reports the pods without probes", func(m *v1alpha1.PodProbeMarker) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProbesResolved)
		return await.ErrorIf(c == nil || c.Reason != string(plan.PodPlanFull) ||
			!strings.Contains(c.Message, fmt.Sprintf("of %d matched pods, such as pod-", pods)), "%+v", c)
	})
	other := newWorldWithoutManager(t, w.Env)
	marker := other.marker(builders.Marker(other.Namespace, "modest").Probe(builders.Probe("p").Label(succeeded, "a", "b")))
	pod := other.pod("modest", node)
	w.inPlan(node, pod, true)
	other.Must(other.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	w.inPlan(node, pod, false)
	other.Must(other.Client.Delete(t.Context(), marker))
	other.gone("modest")

	w.Delete(w.markerNamed("greedy"))
	w.gone("greedy")
}

// inPlan waits until the plan of the node has the pod, or does not have it.
func (w *world) inPlan(node string, pod *corev1.Pod, want bool) {
	w.Helper()
	w.Until(fmt.Sprintf("pod %s is planned: %t", pod.Name, want), func() error {
		got := slices.ContainsFunc(w.storedPlan(node).Spec.PodProbes, func(p v1alpha1.PodProbe) bool { return p.UID == string(pod.UID) })
		return await.ErrorIf(got != want, "it is planned: %t", got)
	})
}
