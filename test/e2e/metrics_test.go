// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// scrape returns the metrics of each pod of a component, by the pod's node and name.
func (s *suite) scrape(ctx context.Context, component, port string) (map[string]map[string]*dto.MetricFamily, error) {
	var pods corev1.PodList
	err := s.Client.List(ctx, &pods, ctrl.InNamespace(cluster.SystemNamespace),
		ctrl.MatchingLabels{"app.kubernetes.io/name": "seamark", "app.kubernetes.io/component": component})
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]*dto.MetricFamily{}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		raw, err := s.clientset.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, port, "metrics", nil).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("scrape %s: %w", pod.Name, err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("parse the metrics of %s: %w", pod.Name, err)
		}
		all[pod.Spec.NodeName+" "+pod.Name] = families
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no pod of the %s is running", component)
	}
	return all, nil
}

// value returns the sum and the number of the series of a metric with the labels.
func value(families map[string]*dto.MetricFamily, name string, labels map[string]string) (sum float64, many int) {
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, pair := range m.GetLabel() {
			has[pair.GetName()] = pair.GetValue()
		}
		if subset(labels, has) {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			many++
		}
	}
	return sum, many
}

func subset(labels, has map[string]string) bool {
	for key, want := range labels {
		if has[key] != want {
			return false
		}
	}
	return true
}

// TestMetrics checks the metrics of the running programs: pods by state, which only one manager
// exports, and timeouts. The reference documents all metrics.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "measured"}
	s.Create(newPod("good", "touch /tmp/good; sleep 1000", labels), newPod("bad", idle, labels))
	s.running("good", "bad")
	s.Create(newMarker("measured", labels,
		newProbe("state", shell("test -e /tmp/good"), condition("game.io/good")),
		newProbe("hangs", shell("sleep 1000"), condition("game.io/hangs"), timeout(1))))
	pods := func(want map[string]float64) func(context.Context) error {
		return func(ctx context.Context) error {
			managers, err := s.scrape(ctx, "manager", "8080")
			if err != nil {
				return err
			}
			for key, n := range want {
				probe, state, _ := strings.Cut(key, " ")
				sum, many := 0.0, 0
				for _, families := range managers {
					n, m := value(families, "seamark_manager_probed_pods",
						map[string]string{"namespace": s.Namespace, "marker": "measured", "probe": probe, "state": state})
					sum, many = sum+n, many+m
				}
				if sum != n || many != 1 {
					return fmt.Errorf("%v pods with %s in %d series, want %v in one series", sum, key, many, n)
				}
			}
			return nil
		}
	}
	s.Eventually("pods by state", pods(map[string]float64{
		"state Succeeded": 1, "state Failed": 1, "state NoResult": 0, "hangs Failed": 2, "hangs Succeeded": 0,
	}))
	node := s.getPod("bad").Spec.NodeName
	agents, err := s.scrape(t.Context(), "agent", "18357")
	cluster.Must(t, err)
	for name, families := range agents {
		if !strings.HasPrefix(name, node+" ") {
			continue
		}
		if n, _ := value(families, "seamark_agent_probes_total", map[string]string{"handler": "exec", "result": "timeout"}); n < 2 {
			t.Errorf("%v timeouts on node %s, want at least 2: the commands of both pods hang", n, node)
		}
		if n, _ := value(families, "seamark_agent_info", map[string]string{"node": node}); n != 1 {
			t.Errorf("seamark_agent_info of node %s is missing", node)
		}
		documented(t, families)
	}

	cluster.Must(t, s.Client.DeleteAllOf(t.Context(), &appsv1alpha1.PodProbeMarker{}, ctrl.InNamespace(s.Namespace)))
	s.Eventually("the marker's series are removed", func(ctx context.Context) error {
		managers, err := s.scrape(ctx, "manager", "8080")
		if err != nil {
			return err
		}
		for name, families := range managers {
			documented(t, families)
			if _, many := value(families, "seamark_manager_probed_pods", map[string]string{"namespace": s.Namespace}); many > 0 {
				return fmt.Errorf("%s has %d series", name, many)
			}
		}
		return nil
	})
}

// documented checks that the reference documents all exported metrics.
func documented(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	cluster.Must(t, err)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if strings.HasPrefix(name, "seamark_") && !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/metrics.md does not document %s", name)
		}
	}
}
