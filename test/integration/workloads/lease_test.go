// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// TestControllersYieldToOpenKruise starts the program while the lease of OpenKruise's manager is held,
// and lets the lease expire.
func TestControllersYieldToOpenKruise(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	lease := program.OpenKruiseLeads(t, w.Env, time.Hour)
	defer func() { w.Delete(builders.OpenKruiseWebhook(program.OpenKruise)); w.Delete(lease) }()
	set := w.cloneSet("web", 2)
	w.start()
	w.Until("an event about the lease", func() error {
		system := env.WorldOf(t, w.Env, program.OpenKruise)
		found := slices.ContainsFunc(system.Events("SeamarkYields"), func(e corev1.Event) bool { return e.InvolvedObject.Name == lease.Name })
		return await.ErrorIf(!found, "no event")
	})
	if yields := w.gauge("seamark_workloads_yielding", "CloneSet"); yields != 1 {
		t.Errorf("seamark_workloads_yielding is %g, want 1", yields)
	}
	pods, err := w.pods(t.Context(), "web")
	if w.Must(err); len(pods) != 0 {
		t.Errorf("%d pods while OpenKruise's manager holds its lease, want none", len(pods))
	}
	// The lease expires: it is short now, and not renewed.
	w.Patch(lease, `{"spec":{"leaseDurationSeconds":1}}`)
	w.settled(set, 2, "image:1")
	if yields := w.gauge("seamark_workloads_yielding", "CloneSet"); yields != 0 {
		t.Errorf("seamark_workloads_yielding is %g, want 0", yields)
	}
}

// gauge returns the value of a metric of the kind.
func (w *world) gauge(name, kind string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.Must(err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() == "kind" && label.GetValue() == kind {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
	}
	w.Must(errors.New("no metric " + name + " of kind " + kind))
	return 0
}
