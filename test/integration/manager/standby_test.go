// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"fmt"
	"testing"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// TestStandby checks that a manager that waits for the lease does not accumulate work in its
// queues: it may wait for months. The queues are those of the process.
func TestStandby(t *testing.T) {
	e := servers.Serial(t)
	w := newWorldWithoutManager(t, e)
	defer w.clean()
	before := queued(t)
	for range 2 {
		health := env.FreeAddress(t)
		program.StartManager(t, manager.Options{
			Config: e.Component(t, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
			HealthProbeBindAddress: health,
		})
		w.ready(health)
	}
	w.node("standby")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	for i := range 10 {
		w.pod(fmt.Sprint("pod-", i), "standby")
	}
	w.matched("web", 10)
	w.report("standby", states{"web#p": succeeded})
	w.marked("pod-9", "label web=1")
	w.Until("all queues are empty", func() error {
		more := queued(t) - before
		return await.ErrorIf(more > 0, "%v queued requests", more)
	})
}

// queued returns the number of requests in the queues of this process's managers.
func queued(t *testing.T) float64 {
	families, err := ctrlmetrics.Registry.Gather()
	expect.NoError(t, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "workqueue_depth" {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetGauge().GetValue()
		}
	}
	return sum
}
