// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object has the fields of a rendered object that the tests read.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Selector any
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct{ Ports []struct{ Name string } }
			}
		}
		Ports []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Endpoints           []struct{ Port string }
		PodMetricsEndpoints []struct{ Port string } `yaml:"podMetricsEndpoints"`
		Groups              []any
	}
	Data map[string]string
}

// render renders the chart and returns the objects by kind.
func render(t *testing.T, args ...string) map[string]object {
	t.Helper()
	out := output(t, "helm", append([]string{"template", "seamark", "charts/seamark", "--namespace", "ns"}, args...)...)
	all := map[string]object{}
	decoder := yaml.NewDecoder(bytes.NewReader(out))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("decode the rendered chart: %v", err)
		}
		switch o.Kind {
		case "Service", "ConfigMap":
			all[o.Kind+" "+o.Metadata.Name] = o
		default:
			all[o.Kind] = o
		}
	}
}

func TestChartHasNoMonitoringByDefault(t *testing.T) {
	all := render(t)
	for _, kind := range []string{
		"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap seamark-dashboard", "Service seamark-manager-metrics",
	} {
		if _, found := all[kind]; found {
			t.Errorf("the chart renders a %s by default", kind)
		}
	}
}

func TestChartWithMonitoring(t *testing.T) {
	all := render(t, "--set", "monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true",
		"--set", "monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true",
		"--set", "monitoring.serviceMonitor.labels.release=prometheus,monitoring.dashboard.labels.team=games")
	service, monitor := all["Service seamark-manager-metrics"], all["ServiceMonitor"]
	manager, agent, pods := all["Deployment"], all["DaemonSet"], all["PodMonitor"]
	selects(t, "ServiceMonitor", monitor.Spec.Selector, service.Metadata.Labels)
	selects(t, "Service", service.Spec.Selector, manager.Spec.Template.Metadata.Labels)
	selects(t, "PodMonitor", pods.Spec.Selector, agent.Spec.Template.Metadata.Labels)
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 || len(pods.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("want one port each: %+v, %+v, %+v", monitor.Spec.Endpoints, service.Spec.Ports, pods.Spec.PodMetricsEndpoints)
	}
	if monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name || !hasPort(manager, service.Spec.Ports[0].TargetPort) {
		t.Errorf("port %s of the Service %+v is not a port of the manager", monitor.Spec.Endpoints[0].Port, service.Spec.Ports)
	}
	if !hasPort(agent, pods.Spec.PodMetricsEndpoints[0].Port) {
		t.Errorf("port %s is not a port of the agent", pods.Spec.PodMetricsEndpoints[0].Port)
	}
	if monitor.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("labels %v of the ServiceMonitor, want the configured ones included", monitor.Metadata.Labels)
	}

	var file struct{ Groups []any }
	readYAML(t, rulesFile, &file)
	if want, got := encode(t, file.Groups), encode(t, all["PrometheusRule"].Spec.Groups); want != got {
		t.Errorf("the groups of the PrometheusRule differ from the file:\n%s", got)
	}
	dashboard := all["ConfigMap seamark-dashboard"]
	if l := dashboard.Metadata.Labels; l["grafana_dashboard"] != "1" || l["team"] != "games" {
		t.Errorf("labels %v of the dashboard, want grafana_dashboard and the configured ones", l)
	}
	want, err := os.ReadFile(filepath.Join(root, "charts/seamark/files/dashboards/seamark.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := dashboard.Data["seamark.json"]; string(bytes.TrimSpace(want)) != string(bytes.TrimSpace([]byte(got))) {
		t.Error("the dashboard in the ConfigMap differs from the file")
	}
}

// selects checks that a selector, with or without matchLabels, selects the labels.
func selects(t *testing.T, what string, selector any, labels map[string]string) {
	t.Helper()
	required, _ := selector.(map[string]any)
	if inner, found := required["matchLabels"].(map[string]any); found {
		required = inner
	}
	if len(required) == 0 {
		t.Errorf("the selector of the %s is empty", what)
	}
	for key, value := range required {
		if labels[key] != value {
			t.Errorf("the %s selects %s=%v, which %v lack", what, key, value, labels)
		}
	}
}

func hasPort(o object, name string) bool {
	for _, container := range o.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(container.Ports, func(p struct{ Name string }) bool { return p.Name == name }) {
			return true
		}
	}
	return false
}

func encode(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
