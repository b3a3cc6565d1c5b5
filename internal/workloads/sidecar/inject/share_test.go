// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inject_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func TestShared(t *testing.T) {
	from := func(names ...string) v1alpha1.TransferEnvVar {
		return v1alpha1.TransferEnvVar{SourceContainerName: "app", EnvName: names[0], EnvNames: names[1:]}
	}
	byField := func(path string) v1alpha1.TransferEnvVar {
		return v1alpha1.TransferEnvVar{SourceContainerNameFrom: &v1alpha1.SourceContainerNameSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}, EnvName: "C"}
	}
	for name, test := range map[string]struct {
		edits    []func(*v1alpha1.SidecarContainer)
		env      string
		paths    string
		devices  int
		warnings []string
	}{
		"nothing":      {env: "IS_INJECTED"},
		"mounts":       {edits: []func(*v1alpha1.SidecarContainer){sharing}, env: "IS_INJECTED A B", paths: "/data /logs", devices: 1},
		"used path":    {edits: []func(*v1alpha1.SidecarContainer){mounts("own", "/data"), sharing}, env: "IS_INJECTED", paths: "/data /logs", devices: 1},
		"variables":    {edits: []func(*v1alpha1.SidecarContainer){transfers(from("C", "B"))}, env: "IS_INJECTED A B C"},
		"own variable": {edits: []func(*v1alpha1.SidecarContainer){func(c *v1alpha1.SidecarContainer) { c.Env = []corev1.EnvVar{{Name: "B", Value: "own"}} }, transfers(from("B"))}, env: "B IS_INJECTED"},
		"marked already": {edits: []func(*v1alpha1.SidecarContainer){func(c *v1alpha1.SidecarContainer) {
			c.Env = []corev1.EnvVar{{Name: v1alpha1.SidecarInjectedEnv, Value: "no"}}
		}}, env: "IS_INJECTED"},
		"missing":         {edits: []func(*v1alpha1.SidecarContainer){transfers(from("X", "C"))}, env: "IS_INJECTED C", warnings: []string{`SidecarSet logs: container log gets no variable X: container "app" does not have it`}},
		"no container":    {edits: []func(*v1alpha1.SidecarContainer){transfers(v1alpha1.TransferEnvVar{SourceContainerName: "db", EnvName: "C"})}, env: "IS_INJECTED", warnings: []string{`SidecarSet logs: container log gets no variables: the pod has no container "db"`}},
		"container label": {edits: []func(*v1alpha1.SidecarContainer){transfers(byField("metadata.labels['main']"))}, env: "IS_INJECTED C"},
		"no annotation":   {edits: []func(*v1alpha1.SidecarContainer){transfers(byField("metadata.annotations['main']"))}, env: "IS_INJECTED", warnings: []string{"SidecarSet logs: container log gets no variables: the pod has no metadata.annotations['main']"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := injectAll(t, pod(app()), set("logs", container("log", test.edits...)))
			if err != nil {
				t.Fatal(err)
			}
			c := got.Spec.Containers[0]
			var env, paths []string
			for _, v := range c.Env {
				env = append(env, v.Name)
			}
			for _, m := range c.VolumeMounts {
				paths = append(paths, m.MountPath)
			}
			if strings.Join(env, " ") != test.env || strings.Join(paths, " ") != test.paths || len(c.VolumeDevices) != test.devices {
				t.Errorf("variables %v, paths %v, devices %v, want %s; %s; %d", env, paths, c.VolumeDevices, test.env, test.paths, test.devices)
			}
			if diff := cmp.Diff(test.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if !cmp.Equal(got.Spec.Containers[1], app()) {
				t.Errorf("the container of the pod changed: %+v", got.Spec.Containers[1])
			}
		})
	}
	// A webhook that runs between the set and its reinvocation adds a mount, which is shared.
	logs := set("logs", container("log", sharing))
	got, _, err := injectAll(t, pod(app()), logs)
	if err != nil {
		t.Fatal(err)
	}
	got.Spec.Containers[1].VolumeMounts = append(got.Spec.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "late", MountPath: "/late"})
	again, _, err := injectAll(t, got, logs)
	if mounts := again.Spec.Containers[0].VolumeMounts; err != nil || mounts[len(mounts)-1].MountPath != "/late" || len(mounts) != 3 {
		t.Errorf("mounts %v, error %v, want /late too", mounts, err)
	}
}

// TestTransferredVariables compares the variables and their values with those that OpenKruise transfers.
func TestTransferredVariables(t *testing.T) {
	variables := func(texts ...string) (all []corev1.EnvVar) {
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			all = append(all, corev1.EnvVar{Name: name, Value: value})
		}
		return all
	}
	from := func(container string, names ...string) v1alpha1.TransferEnvVar {
		return v1alpha1.TransferEnvVar{SourceContainerName: container, EnvName: names[0], EnvNames: names[1:]}
	}
	by := func(path string, names ...string) v1alpha1.TransferEnvVar {
		return v1alpha1.TransferEnvVar{EnvNames: names, SourceContainerNameFrom: &v1alpha1.SourceContainerNameSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	share := func(c *v1alpha1.SidecarContainer) { c.ShareVolumePolicy.Type = v1alpha1.ShareVolumePolicyEnabled }
	for name, test := range map[string]struct {
		env   []string
		edits []func(*v1alpha1.SidecarContainer)
		want  string
	}{
		"by name, in an entry":       {[]string{"C=3", "B=2", "A=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "C", "A", "B"))}, "A=1 B=2 C=3"},
		"entries in their order":     {[]string{"A=1", "B=2"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "B")), transfers(from("app", "A"))}, "B=2 A=1"},
		"a name twice":               {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "A", "A"))}, "A=1"},
		"a variable twice":           {[]string{"A=1", "A=2"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "A"))}, "A=2"},
		"two sources":                {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("db", "A")), transfers(from("app", "A"))}, "A=db"},
		"label":                      {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(by("metadata.labels['main']", "A"))}, "A=1"},
		"annotation":                 {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(by("metadata.annotations['data']", "A"))}, "A=db"},
		"no label":                   {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(by("metadata.labels['other']", "A"))}, ""},
		"no source":                  {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("other", "A")), transfers(from("app", "A"))}, "A=1"},
		"before those of mounts":     {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){share, transfers(from("app", "A"))}, "A=1"},
		"of mounts":                  {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){share}, "A=db"},
		"references in front":        {[]string{"Z=1", "Y=$(Z)", "A=$(Y)"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "A", "Z"))}, "Z=1 Y=$(Z) A=$(Y)"},
		"reference to a later one":   {[]string{"A=$(B)", "B=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "A"))}, "A=$(B)"},
		"reference to itself":        {[]string{"A=$(A)"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "A"))}, "A=$(A)"},
		"reference to an earlier A":  {[]string{"A=1", "B=$(A)", "A=2"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "B"))}, "A=1 B=$(A)"},
		"a variable of its own":      {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){func(c *v1alpha1.SidecarContainer) { c.Env = variables("A=own") }, transfers(from("app", "A"))}, ""},
		"a variable that is missing": {[]string{"A=1"}, []func(*v1alpha1.SidecarContainer){transfers(from("app", "X", "A"))}, "A=1"},
	} {
		t.Run(name, func(t *testing.T) {
			db := corev1.Container{Name: "db", Env: variables("A=db"), VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPathExpr: "$(A)"}}}
			p := pod(corev1.Container{Name: "app", Env: variables(test.env...)}, db)
			p.Annotations = map[string]string{"data": "db"}
			got, _, err := injectAll(t, p, set("logs", container("log", test.edits...)))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			marked := false
			for _, v := range got.Spec.Containers[0].Env {
				if marked {
					all = append(all, v.Name+"="+v.Value)
				}
				marked = marked || v.Name == v1alpha1.SidecarInjectedEnv
			}
			if got := strings.Join(all, " "); got != test.want {
				t.Errorf("variables %s, want %s", got, test.want)
			}
		})
	}
}
