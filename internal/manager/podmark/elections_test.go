// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRequestsOfAReconcileAreBounded has more policies than a reconcile asks for, and more ended pods than it writes.
func TestRequestsOfAReconcileAreBounded(t *testing.T) {
	marker := builders.Marker("ns", "db")
	for i := range 3 * maxAsked {
		marker.Probe(builders.Probe(fmt.Sprint("p", i)).Label(v1alpha1.ProbeSucceeded, fmt.Sprint("role", i), "primary").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{}))
	}
	stored := marker.Build()
	compiled, err := plan.Compile(stored)
	expect.NoError(t, err)
	b := builders.Pod("ns", "a").Label("app", "game").Node("node")
	fields := make([]string, 0, 3*maxAsked)
	for _, e := range compiled.Exclusives() {
		b.Label(e.Ticket, "")
		fields = append(fields, `"f:`+e.Ticket+`":{}`)
	}
	pod := b.ManagedFields(v1alpha1.FieldManager, "status", `{"f:metadata":{"f:labels":{`+strings.Join(fields, ",")+`}}}`).Build()
	report := reportOf("node", pod, v1alpha1.ProbeSucceeded)
	report.Pods[0].Probes = nil
	for i := range 3 * maxAsked {
		report.Pods[0].Probes = append(report.Pods[0].Probes, v1alpha1.ContainerProbeState{Name: fmt.Sprint("db#p", i), State: v1alpha1.ProbeSucceeded})
	}
	pods, live := &recorded{}, &listing{}
	for i := range 3 * maxEnded {
		ended := builders.Pod("ns", fmt.Sprint("ended", i)).Label("app", "game").Label(compiled.Exclusives()[0].Ticket, "").Phase(corev1.PodFailed)
		live.answer = append(live.answer, *ended.Build())
	}
	r := reconciler(t, pods, stored, pod, report)
	r.Live = live
	if reconcileOne(t, r, "a"); len(live.options) != maxAsked || len(pods.removed) != maxEnded {
		t.Errorf("%d lists and %d removed tickets, want %d and %d", len(live.options), len(pods.removed), maxAsked, maxEnded)
	}
}

// TestElectionsAreForgotten checks that nothing remains of markers and pods that are gone.
func TestElectionsAreForgotten(t *testing.T) {
	r, _, _ := duel(t, &recorded{}, v1alpha1.ExclusivePolicy{}, builders.Pod("ns", "a"), builders.Pod("ns", "b"))
	reconcileOne(t, r, "a")
	api := r.Reader.Client.(client.Client) //nolint:forcetypeassert // a panic fails the test
	for _, name := range []string{"a", "b"} {
		expect.NoError(t, api.Delete(t.Context(), builders.Pod("ns", name).Build()))
		if reconcileOne(t, r, name); name == "a" && len(r.elections.namespaces) != 1 {
			t.Errorf("elections %v, want that of pod b", r.elections.namespaces)
		}
	}
	expect.Equal(t, fmt.Sprintf("elections %v", r.elections.namespaces), 0, len(r.elections.namespaces))
}
