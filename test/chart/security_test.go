// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// everything turns all of the chart's features on.
const everything = `
featureGates: {EnablePodProbeMarkerOnServerless: true}
serverless: {webhook: {certificates: certManager}}
policies: {markerAuthor: {enforcement: Deny}}
networkPolicy:
  egress: [{ports: [{port: 443}]}]
  metricsFrom: [{podSelector: {matchLabels: {a: b}}}]
monitoring:
  serviceMonitor: {enabled: true}
  podMonitor: {enabled: true}
  prometheusRule: {enabled: true}
  dashboard: {enabled: true}
manager: {config: {logging: {verbosity: 1}}}
agent: {config: {logging: {verbosity: 1}}}
`

// TestPods holds every pod of the chart, those of hooks among them, to what Kubernetes'
// restricted standard asks and to a root that nothing is written to, but for what the
// agent needs.
func TestPods(t *testing.T) {
	got := map[string][]string{}
	for k, object := range parse(t, template(t, tool(t, "helm"), "ns", "--values", valuesFile(t, everything))) {
		spec := at(object, []string{"spec", "template", "spec"})
		if k.Kind == "Pod" {
			spec = object["spec"]
		}
		if spec == nil || !strings.HasPrefix(k.Name, "seamark-") {
			continue
		}
		var pod corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec.(map[string]any), &pod); err != nil {
			t.Fatal(err)
		}
		got[k.Kind+" "+k.Name] = grants(&pod)
	}
	want := map[string][]string{
		"Deployment seamark-manager": nil,
		"Job seamark-uninstall":      nil,
		"Pod seamark-selftest":       nil,
		"DaemonSet seamark-agent":    {"host network", "host port 10357", "host path /run", "user 0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the pods have beyond the least (-want +got):\n%s", diff)
	}
}

// valuesFile writes values to a file for helm.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// grants returns what a pod has beyond the least.
func grants(pod *corev1.PodSpec) []string {
	var all []string
	add := func(granted bool, format string, args ...any) {
		if granted {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	if pod.SecurityContext == nil {
		return []string{"no security context"}
	}
	add(pod.HostNetwork, "host network")
	add(pod.HostPID || pod.HostIPC, "processes or IPC of the host")
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, port := range c.Ports {
			add(port.HostPort != 0, "host port %d", port.HostPort)
		}
		s := c.SecurityContext
		if s == nil {
			s = &corev1.SecurityContext{}
		}
		add(s.Privileged != nil && *s.Privileged, "privileges")
		add(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "privilege escalation")
		add(s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, "a root to write to")
		add(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0, "capabilities")
		for _, mount := range c.VolumeMounts {
			add(!mount.ReadOnly, "%s to write to", mount.MountPath)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			add(true, "host path %s", volume.HostPath.Path)
		}
	}
	user := pod.SecurityContext.RunAsUser
	add(user == nil || *user == 0, "user 0")
	add(user != nil && *user != 0 && (pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot), "perhaps root")
	profile := pod.SecurityContext.SeccompProfile
	add(profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "every system call")
	return all
}
