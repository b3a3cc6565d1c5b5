// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestRestartWritesNothing restarts the program with 50 sets of 10 pods: it reconciles each once.
// The reconciles are counted for the whole process.
func TestRestartWritesNothing(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Serial(t))
	stop := w.start()
	const sets, replicas = 25, 10
	var all []client.Object
	for i := range sets {
		clones := w.cloneSet(fmt.Sprint("clones-", i), replicas, func(set *v1alpha1.CloneSet) {
			set.Spec.ProgressDeadlineSeconds = new(int32(600))
		})
		all = append(all, clones, w.statefulSet(fmt.Sprint("stateful-", i), replicas, parallel))
	}
	for _, set := range all {
		w.settled(set, replicas, "image:1")
	}
	stop()
	writes, reconciles := w.writes(), reconciled(t)
	w.start()
	w.Until("every set is reconciled", func() error {
		n := reconciled(t) - reconciles
		return await.ErrorIf(n < 2*sets, "%g reconciles", n)
	})
	// What a second reconcile or a write would follow from has happened by now.
	select {
	case <-time.After(time.Second):
	case <-t.Context().Done():
	}
	if n := reconciled(t) - reconciles; n != 2*sets {
		t.Errorf("%g reconciles of %d sets, want one each", n, 2*sets)
	}
	if diff := w.writes() - writes; diff != 0 {
		t.Errorf("%d writes after a restart with nothing to do, want none", diff)
	}
}

// writes returns the number of writes to sets, pods, claims and revisions that the API server served.
func (w *world) writes() int {
	w.Helper()
	requests, err := w.Requests(w.Context())
	w.Must(err)
	return requests.Count(func(r env.Request) bool {
		return r.IsWrite() && strings.Contains("clonesets statefulsets pods persistentvolumeclaims controllerrevisions", r.Resource)
	})
}

// reconciled returns the number of reconciles of both controllers.
func reconciled(t *testing.T) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	expect.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, metric := range family.GetMetric() {
				total += count(metric)
			}
		}
	}
	return total
}

func count(metric *dto.Metric) float64 { return metric.GetCounter().GetValue() }
