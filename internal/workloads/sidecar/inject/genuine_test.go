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

// TestImagesOfOtherWebhooks calls the injector again after another webhook has changed the image, and checks which of
// the changes a set refuses.
func TestImagesOfOtherWebhooks(t *testing.T) {
	const digest, other = "@sha256:aa", "@sha256:bb"
	for name, test := range map[string]struct {
		revision, pod string
		refused       bool
	}{
		"mirror":                          {"nginx:1", "mirror.example:5000/nginx:1", false},
		"mirror of Docker's image":        {"nginx:1", "mirror.example/library/nginx:1", false},
		"mirror with a path":              {"nginx:1", "mirror.example/proxy/library/nginx:1", false},
		"mirror with a path, of a team":   {"quay.example/team/app:1", "mirror.example/quay/team/app:1", false},
		"digest":                          {"nginx:1", "nginx:1" + digest, false},
		"digest in place of the tag":      {"nginx:1", "nginx" + digest, false},
		"digest of the latest":            {"nginx", "nginx" + digest, false},
		"digest of the latest, with tag":  {"nginx", "nginx:latest" + digest, false},
		"digest in a mirror with a path":  {"nginx:1", "mirror.example/proxy/nginx:1" + digest, false},
		"pinned, in a mirror":             {"nginx:1" + digest, "mirror.example/nginx:1" + digest, false},
		"another tag":                     {"nginx:1", "nginx:2", true},
		"no tag":                          {"nginx:1", "nginx", true},
		"another tag with a digest":       {"nginx:1", "nginx:2" + digest, true},
		"another digest":                  {"nginx:1" + digest, "nginx:1" + other, true},
		"no digest":                       {"nginx:1" + digest, "nginx:1", true},
		"pinned, without the tag":         {"nginx:1" + digest, "nginx" + digest, false},
		"pinned, with a tag":              {"nginx" + digest, "nginx:1" + digest, true},
		"another repository":              {"nginx:1", "evil:1", true},
		"another repository of a team":    {"team/app:1", "mirror.example/app:1", true},
		"a project of another":            {"nginx:1", "attacker/nginx:1", true},
		"a project of another, private":   {"harbor.example/infra/app:1", "harbor.example/attacker/infra/app:1", true},
		"a repository with the same end":  {"nginx:1", "mirror.example/my-nginx:1", true},
		"another repository, in a digest": {"nginx:1", "mirror.example/evil@sha256:aa/nginx:1", true},
		"another repository, in a port":   {"nginx:1", "mirror.example/evil:2/nginx", true},
	} {
		t.Run(name, func(t *testing.T) {
			revision := set("logs", container("log"))
			revision.Containers[0].Image = test.revision
			known := func(string, string) *inject.Revision { return revision }
			p, _, err := inject.Inject(pod(app()), revision, known, at)
			if err != nil {
				t.Fatal(err)
			}
			p.Spec.Containers[0].Image = test.pod
			got, _, err := inject.Inject(p, revision, known, at)
			if (err != nil) != test.refused || err == nil && got.Spec.Containers[0].Image != test.pod {
				t.Errorf("error %v, want refused %t, pod %+v", err, test.refused, got)
			}
		})
	}
}

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
		"image":          {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "busybox:1" }, "", "image", `["busybox:1"] instead of ["registry.example.com/log:1"]`},
		"tag":            {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "log:2" }, "", "image", `["log:2"] instead of`},
		"repository":     {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example.com/evil-log:1" }, "", "image", `["registry.example.com/evil-log:1"] instead of`},
		"command":        {func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sleep"} }, "", "command", `["sleep"] instead of ["ship"]`},
		"no command":     {func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil }, "", "command", `[] instead of ["ship"]`},
		"args":           {func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"--none"} }, "", "args", `["--none"] instead of ["--all"]`},
		"init container": {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "pause" }, "", "image", `["pause"] instead of ["proxy:1"]`},
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

// TestOneRevision injects another revision into a pod that has one: it keeps the one, with what it shares, or gets the other.
func TestOneRevision(t *testing.T) {
	first := set("logs", container("log"), container("old", transfers(v1alpha1.TransferEnvVar{SourceContainerName: "app", EnvName: "A"})))
	second := set("logs", container("log", transfers(v1alpha1.TransferEnvVar{SourceContainerName: "app", EnvName: "C"})), container("new"))
	swapped := set("logs", container("log", transfers(v1alpha1.TransferEnvVar{SourceContainerName: "app", EnvName: "C"})), container("old"))
	second.Name, swapped.Name = "logs-2", "logs-3"
	mesh := set("mesh", container("proxy"))
	known := func(_, name string) *inject.Revision {
		return map[string]*inject.Revision{"logs-1": first, "logs-2": second, "logs-3": swapped, "mesh-1": mesh}[name]
	}
	for name, test := range map[string]struct {
		revision *inject.Revision
		want     string
		// env are the variables of the first container.
		env int
	}{
		"with other containers":      {second, "log new proxy app", 2},
		"with the same containers":   {swapped, "log old proxy app", 1},
		"the one that the pod names": {first, "log old proxy app", 1},
	} {
		p := pod(app())
		for _, revision := range []*inject.Revision{first, mesh, test.revision} {
			var err error
			if p, _, err = inject.Inject(p, revision, known, at); err != nil {
				t.Fatal(err)
			}
		}
		if got := names(p.Spec.Containers); got != test.want || len(p.Spec.Containers[0].Env) != test.env {
			t.Errorf("%s: containers %s with %d variables, want %s with %d", name, got, len(p.Spec.Containers[0].Env), test.want, test.env)
		}
	}
	// A revision that had a container of another set does not remove that.
	first.Containers[1].Name = "proxy"
	p, _, err := inject.Inject(pod(app()), mesh, known, at)
	if err == nil {
		p.Annotations[v1alpha1.SidecarSetListKey] = "logs,mesh"
		p.Annotations[v1alpha1.SidecarSetHashKey] = strings.Replace(p.Annotations[v1alpha1.SidecarSetHashKey], "{", `{"logs":{"controllerRevision":"logs-1"},`, 1)
		p, _, err = inject.Inject(p, second, known, at)
	}
	if err != nil || names(p.Spec.Containers) != "log new proxy app" {
		t.Errorf("error %v, containers %s", err, names(p.Spec.Containers))
	}
}
