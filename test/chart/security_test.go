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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/test/expect"
)

// everything enables all features of the chart.
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
workloads: {enabled: true, config: {logging: {verbosity: 1}}}
`

// TestPodSecurity checks that every pod of the chart, including those of hooks, meets the
// restricted Pod Security Standard and has a read-only root file system, except for what the
// agent needs.
func TestPodSecurity(t *testing.T) {
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
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(spec.(map[string]any), &pod))
		got[k.Kind+" "+k.Name] = grants(&pod)
	}
	want := map[string][]string{
		"Deployment seamark-manager":   nil,
		"Deployment seamark-workloads": nil,
		"Job seamark-uninstall":        nil,
		"Pod seamark-selftest":         nil,
		"DaemonSet seamark-agent":      {"host network", "host port 18357", "host path /run", "user 0"},
	}
	expect.Equal(t, want, got, "privileges of the pods")
}

// valuesFile writes values to a temporary file.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return file
}

// grants lists the privileges of a pod.
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
	add(pod.HostPID || pod.HostIPC, "host PID or IPC namespace")
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, port := range c.Ports {
			add(port.HostPort != 0, "host port %d", port.HostPort)
		}
		s := c.SecurityContext
		if s == nil {
			s = &corev1.SecurityContext{}
		}
		add(s.Privileged != nil && *s.Privileged, "privileged")
		add(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "privilege escalation")
		add(s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, "writable root file system")
		add(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0, "capabilities")
		for _, mount := range c.VolumeMounts {
			add(!mount.ReadOnly, "writable %s", mount.MountPath)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			add(true, "host path %s", volume.HostPath.Path)
		}
	}
	user := pod.SecurityContext.RunAsUser
	add(user == nil || *user == 0, "user 0")
	add(user != nil && *user != 0 && (pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot), "possibly root")
	profile := pod.SecurityContext.SeccompProfile
	add(profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
	return all
}
