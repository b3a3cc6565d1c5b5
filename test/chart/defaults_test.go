// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestManifestsMatchDefaults checks that the manifests repeat the defaults of the programs.
// TestChartMatchesConfig extends this to the templates of the chart.
func TestManifestsMatchDefaults(t *testing.T) {
	const ports = "spec.template.spec.containers.0.ports."
	var m configv1alpha1.ManagerConfiguration
	var a configv1alpha1.AgentConfiguration
	var w configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetManagerDefaults(&m)
	configv1alpha1.SetAgentDefaults(&a)
	configv1alpha1.SetWorkloadsDefaults(&w)
	webhook := m.Serverless.Webhook
	namespaced := func(kind, name string) key {
		return key{Kind: kind, Namespace: configv1alpha1.DefaultNamespace, Name: name}
	}
	deployment, daemonSet := namespaced("Deployment", manager.Name), namespaced("DaemonSet", "seamark-agent")
	hook := key{Kind: "MutatingWebhookConfiguration", Name: webhook.ConfigurationName}
	objects := parse(t, output(t, tool(t, "kustomize"), "build", "config/serverless"))
	for name, test := range map[string]struct {
		object key
		path   string
		want   any
	}{
		"metrics port":    {deployment, ports + "0.containerPort", port(t, m.Metrics)},
		"health port":     {deployment, ports + "1.containerPort", port(t, m.Health)},
		"webhook port":    {deployment, ports + "2.containerPort", int64(webhook.Port)},
		"agent port":      {daemonSet, ports + "0.containerPort", port(t, a.Metrics)},
		"agent host port": {daemonSet, ports + "0.hostPort", port(t, a.Metrics)},
		"webhook Secret":  {namespaced("Secret", webhook.SecretName), "type", "Opaque"},
		"webhook Service": {namespaced("Service", webhook.ServiceName), "spec.ports.0.targetPort", "webhook"},
		"called Service":  {hook, "webhooks.0.clientConfig.service.name", webhook.ServiceName},
		"lease":           {namespaced("Role", manager.Name), "rules.0.resourceNames.0", manager.Name},
	} {
		if got := at(objects[test.object], strings.Split(test.path, ".")); got != test.want {
			t.Errorf("%s: %s %s has %v at %s, want %v", name, test.object.Kind, test.object.Name, got, test.path, test.want)
		}
	}
	if got, want := at(readValues(t), []string{"agent", "port"}), float64(port(t, a.Metrics)); got != want {
		t.Errorf("agent.port in values.yaml is %v, want %v", got, want)
	}
	byCertManager := parse(t, template(t, tool(t, "helm"), "ns",
		"--set", "featureGates.EnablePodProbeMarkerOnServerless=true,serverless.webhook.certificates=certManager"))
	path := strings.Split("spec.template.spec.containers.0.volumeMounts.1.mountPath", ".")
	if got := at(byCertManager[key{Kind: "Deployment", Namespace: "ns", Name: manager.Name}], path); got != webhook.CertificateDirectory {
		t.Errorf("the chart mounts the certificates at %v, want %s", got, webhook.CertificateDirectory)
	}
}

func port(t *testing.T, endpoint configv1alpha1.Endpoint) int64 {
	t.Helper()
	_, text, err := net.SplitHostPort(endpoint.BindAddress)
	expect.NoError(t, err)
	number, err := strconv.ParseInt(text, 10, 64)
	expect.NoError(t, err)
	return number
}

func readValues(t *testing.T) map[string]any {
	t.Helper()
	content, err := os.ReadFile("../../charts/seamark/values.yaml")
	expect.NoError(t, err)
	var values map[string]any
	expect.NoError(t, yaml.Unmarshal(content, &values))
	return values
}

// TestSchemaMatchesConfigurations checks the default that the description of a field in
// the configuration of a program states, and that the program enforces the same bounds.
func TestSchemaMatchesConfigurations(t *testing.T) {
	var m configv1alpha1.ManagerConfiguration
	var a configv1alpha1.AgentConfiguration
	var w configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetManagerDefaults(&m)
	configv1alpha1.SetAgentDefaults(&a)
	configv1alpha1.SetWorkloadsDefaults(&w)
	root := readSchema(t)
	for component, defaults := range map[string]any{"manager": m, "agent": a, "workloads": w} {
		text, err := json.Marshal(defaults)
		expect.NoError(t, err)
		var values map[string]any
		expect.NoError(t, json.Unmarshal(text, &values))
		var walk func(path []string, s *schema)
		walk = func(path []string, s *schema) {
			s = s.resolve(root)
			if match := regexp.MustCompile(`Default (\S+)\.$`).FindStringSubmatch(s.Description); match != nil {
				want := at(values, path)
				if want == nil {
					want = 0 // Omitted because it is zero.
					if s.Type == "boolean" {
						want = false
					}
				}
				if match[1] != fmt.Sprint(want) {
					t.Errorf("%s.config.%s: the schema says %s, want %v", component, strings.Join(path, "."), match[1], want)
				}
			}
			if s.Maximum != nil && *s.Maximum < 1<<31-1 {
				checkMaximum(t, component, path, *s.Maximum)
			}
			for name, property := range s.Properties {
				walk(append(path[:len(path):len(path)], name), property)
			}
		}
		walk(nil, root.Properties[component].Properties["config"])
	}
}

// checkMaximum checks that the program accepts the maximum of a field, and nothing above.
func checkMaximum(t *testing.T, component string, path []string, maximum int64) {
	t.Helper()
	for value, valid := range map[int64]bool{maximum: true, maximum + 1: false} {
		var settings any = value
		for i := len(path) - 1; i >= 0; i-- {
			settings = map[string]any{path[i]: settings}
		}
		file := settings.(map[string]any)
		file["apiVersion"] = configv1alpha1.GroupVersion().String()
		file["kind"] = map[string]string{
			"manager": "ManagerConfiguration", "agent": "AgentConfiguration", "workloads": "WorkloadsConfiguration",
		}[component]
		if err := load(t, component, file); (err == nil) != valid {
			t.Errorf("%s.config.%s=%d: error %v, want an error: %t", component, strings.Join(path, "."), value, err, !valid)
		}
	}
}

// load has the program's own code load the configuration.
func load(t *testing.T, component string, file map[string]any) error {
	t.Helper()
	content, err := yaml.Marshal(file)
	expect.NoError(t, err)
	path := filepath.Join(t.TempDir(), "config.yaml")
	expect.NoError(t, os.WriteFile(path, content, 0o600))
	set := pflag.NewFlagSet(component, pflag.ContinueOnError)
	var loader func() error
	switch component {
	case "agent":
		c := config.NewAgent(set, "node")
		loader = func() error { _, err := c.Load(); return err }
	case "workloads":
		c := config.NewWorkloads(set, "")
		loader = func() error { _, err := c.Load(); return err }
	default:
		c := config.NewManager(set, "")
		loader = func() error { _, err := c.Load(); return err }
	}
	expect.NoError(t, set.Parse([]string{"--config=" + path}))
	return loader()
}
