// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// electing starts a manager with leader election and returns its metrics registry.
func (w *world) electing() (stop func(), registry *prometheus.Registry) {
	w.Helper()
	registry = prometheus.NewRegistry()
	return program.StartManager(w, manager.Options{
		Config: w.Component(w, manager.Name), LeaderElection: true, LeaderElectionNamespace: env.SystemNamespace,
		Registry: registry, Version: "test",
	}), registry
}

// exported waits until the metric has exactly these series, each as its label values in the
// order of the label names, without the namespace, and its value.
func (w *world) exported(registry *prometheus.Registry, metric string, want ...string) {
	w.Helper()
	w.Until(fmt.Sprintf("%s has %v", metric, want), func() error {
		got, err := series(registry, metric)
		return errors.Join(err, await.ErrorIf(!slices.Equal(got, want), "it has %v", got))
	})
}

func series(registry *prometheus.Registry, metric string) ([]string, error) {
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			var words []string
			for _, label := range m.GetLabel() {
				if label.GetName() != "namespace" {
					words = append(words, label.GetValue())
				}
			}
			all = append(all, fmt.Sprintf("%s: %v", strings.Join(words, " "), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	return all, nil
}

// TestMetrics checks the metrics about pods and plans: the leader exports them, the standby
// does not, and they are removed with the marker.
func TestMetrics(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	defer w.clean()
	const pods, planned, plans = "seamark_manager_probed_pods", "seamark_manager_node_planned_probes", "seamark_manager_plans"
	stop, first := w.electing()
	w.node("measured")
	_, second := w.electing()
	for _, name := range []string{"a", "b", "c"} {
		w.pod(name, "measured")
	}
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1")))
	w.planned("measured", "a/web#p", "b/web#p", "c/web#p")
	w.exported(first, pods, "web p Failed: 0", "web p NoResult: 3", "web p Succeeded: 0", "web p Unknown: 0")
	w.exported(first, planned, "measured: 3")
	w.exported(first, plans, "false: 1", "true: 0")

	w.report("measured", states{"web#p": succeeded})
	w.exported(first, pods, "web p Failed: 0", "web p NoResult: 0", "web p Succeeded: 3", "web p Unknown: 0")
	w.exported(first, plans, "false: 0", "true: 1")
	w.exported(first, "seamark_manager_node_plan_pending_seconds")
	w.exported(first, "seamark_manager_info", "test: 1")
	w.exported(second, "seamark_manager_info", "test: 1")
	for _, metric := range []string{pods, planned, plans} {
		if got, err := series(second, metric); err != nil || len(got) > 0 {
			t.Errorf("the standby exports %s: %v, %v", metric, got, err)
		}
	}

	stop()
	w.exported(second, pods, "web p Failed: 0", "web p NoResult: 0", "web p Succeeded: 3", "web p Unknown: 0")
	w.Delete(w.markerNamed("web"))
	w.gone("web")
	w.exported(second, pods)
	w.exported(second, planned)
	w.exported(second, plans, "false: 1", "true: 0")
}

// TestMetricsOfProviders counts the pods on a virtual node by their conditions.
func TestMetricsOfProviders(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutManager(t, e)
	registry := prometheus.NewRegistry()
	program.StartManager(t, manager.Options{
		Config: e.Component(t, manager.Name), Serverless: true, Registry: registry,
	})
	defer w.clean()
	w.virtualNode("provided")
	w.pod("a", "provided")
	w.pod("b", "provided")
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	const pods = "seamark_manager_probed_pods"
	w.exported(registry, pods, "game Idle Failed: 0", "game Idle NoResult: 2", "game Idle Succeeded: 0", "game Idle Unknown: 0")
	w.provide("a", "game.io/idle", corev1.ConditionTrue)
	w.exported(registry, pods, "game Idle Failed: 0", "game Idle NoResult: 1", "game Idle Succeeded: 1", "game Idle Unknown: 0")
}
