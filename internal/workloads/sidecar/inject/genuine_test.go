// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
)

// TestForgedPod creates a pod that says that it has been injected.
func TestForgedPod(t *testing.T) {
	first, second := set("logs", container("log")), set("logs", container("log"))
	for revision, image := range map[*inject.Revision]string{first: "registry.example.com/log:1", second: "log:2"} {
		c := &revision.Containers[0]
		c.Image, c.Command, c.Args = image, []string{"ship"}, []string{"--all"}
		native := container("proxy", native)
		revision.InitContainers = []v1alpha1.SidecarContainer{native}
	}
	second.Name = "logs-2"
	known := func(_, name string) *inject.Revision {
		return map[string]*inject.Revision{"logs-1": first, "logs-2": second}[name]
	}
	for name, test := range map[string]struct {
		forge func(p *corev1.Pod)
		// want is the image that runs, or the beginning and the end of the refusal.
		want, refusal, values string
	}{
		"copied": {func(*corev1.Pod) {}, "registry.example.com/log:1", "", ""},
		"mirror": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror.example.com:5000/log:1" }, "mirror.example.com:5000/log:1", "", ""},
		"variable": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "A"})
		}, "registry.example.com/log:1", "", ""},
		"image":             {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "busybox:1" }, "", "image", `["busybox:1"] instead of ["registry.example.com/log:1"]`},
		"tag":               {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "log:2" }, "", "image", `["log:2"] instead of`},
		"path of the image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example.com/evil/log:1" }, "", "image", `["registry.example.com/evil/log:1"] instead of`},
		"command":           {func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sleep"} }, "", "command", `["sleep"] instead of ["ship"]`},
		"no command":        {func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil }, "", "command", `[] instead of ["ship"]`},
		"args":              {func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"--none"} }, "", "args", `["--none"] instead of ["--all"]`},
		"init container":    {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "pause" }, "", "image", `["pause"] instead of ["proxy:1"]`},
		"another revision": {func(p *corev1.Pod) {
			p.Annotations[v1alpha1.SidecarSetHashKey] = strings.ReplaceAll(p.Annotations[v1alpha1.SidecarSetHashKey], "logs-1", "logs-2")
		}, "", "image", `["registry.example.com/log:1"] instead of ["log:2"]`},
		"unknown revision": {func(p *corev1.Pod) {
			p.Annotations[v1alpha1.SidecarSetHashKey] = strings.ReplaceAll(p.Annotations[v1alpha1.SidecarSetHashKey], "logs-1", "logs-3")
		}, "log:2", "", ""},
		"no revision":       {func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.SidecarSetHashKey) }, "log:2", "", ""},
		"no native sidecar": {func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil }, "log:2", "", ""},
		"in the other list": {func(p *corev1.Pod) {
			p.Spec.Containers, p.Spec.InitContainers = append(p.Spec.Containers, p.Spec.InitContainers...), nil
		}, "log:2", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, err := inject.Inject(pod(app()), first, known, at)
			if err != nil {
				t.Fatal(err)
			}
			test.forge(p)
			got, _, err := inject.Inject(p, second, known, at)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), "it has the "+test.refusal+" "+test.values) {
					t.Errorf("error %v, want %s %s", err, test.refusal, test.values)
				}
				return
			}
			if err != nil || got.Spec.Containers[0].Image != test.want || names(got.Spec.Containers) != "log app" || names(got.Spec.InitContainers) != "proxy" {
				t.Errorf("error %v, pod %+v, want image %s", err, got, test.want)
			}
		})
	}
}
