// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package environ_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "a", "B": "$(A)", "EMPTY": ""}
	for text, want := range map[string]string{
		"":               "",
		"plain":          "plain",
		"$(A)":           "a",
		"x$(A)y$(A)z":    "xayaz",
		"$(B)":           "$(A)",
		"$(EMPTY)":       "",
		"$(NONE)":        "$(NONE)",
		"$$(A)":          "$(A)",
		"$$$(A)":         "$a",
		"$$":             "$",
		"$":              "$",
		"$A":             "$A",
		"${A}":           "${A}",
		"$(A":            "$(A",
		"$(A $(A)":       "$(A $(A)",
		"$()":            "$()",
		"cost: $5 $(A)$": "cost: $5 a$",
	} {
		expect.Equal(t, fmt.Sprintf("Expand(%q)", text), want, environ.Expand(text, values))
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-0", UID: "uid",
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a/b": "note"},
		},
		Spec:   corev1.PodSpec{NodeName: "node", ServiceAccountName: "account"},
		Status: corev1.PodStatus{PodIP: "127.64.0.2", HostIP: "127.0.0.1"},
	}
}

func sources() environ.Sources {
	key := types.NamespacedName{Namespace: "ns", Name: "some"}
	return environ.Sources{
		Pod:        pod(),
		ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{key: {Data: map[string]string{"K": "from map", "bad=key": "x"}}},
		Secrets:    map[types.NamespacedName]*corev1.Secret{key: {Data: map[string][]byte{"S": []byte("from secret")}}},
		Base:       map[string]string{"PATH": "/bin", "HOME": "/root"},
		Volumes:    map[string]string{"my-data": "/run/data", "other": "/run/other"},
		TempDir:    "/run/tmp",
	}
}

func base(more map[string]string) map[string]string {
	all := map[string]string{"PATH": "/bin", "HOME": "/root", "HOSTNAME": "web-0", "TMPDIR": "/run/tmp"}
	for name, value := range more {
		all[name] = value
	}
	return all
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestFor(t *testing.T) {
	yes := true
	some := corev1.LocalObjectReference{Name: "some"}
	none := corev1.LocalObjectReference{Name: "none"}
	for name, test := range map[string]struct {
		container corev1.Container
		want      map[string]string
		command   []string
	}{
		"nothing declared": {
			container: corev1.Container{Command: []string{"run", "$(PATH)"}},
			command:   []string{"run", "$(PATH)"},
		},
		"values and references": {
			container: corev1.Container{
				Command: []string{"$(A)"}, Args: []string{"$(B)", "$$(A)", "$(HOSTNAME)"},
				Env: []corev1.EnvVar{
					{Name: "A", Value: "a"}, {Name: "B", Value: "$(A)b"}, {Name: "C", Value: "$(LATER)"}, {Name: "LATER", Value: "l"},
				},
			},
			want:    map[string]string{"A": "a", "B": "ab", "C": "$(LATER)", "LATER": "l"},
			command: []string{"a", "ab", "$(A)", "$(HOSTNAME)"},
		},
		"fields": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "N", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "U", ValueFrom: field("metadata.uid")}, {Name: "L", ValueFrom: field("metadata.labels['app']")},
				{Name: "AN", ValueFrom: field("metadata.annotations['a/b']")}, {Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "IPS", ValueFrom: field("status.podIPs")}, {Name: "HOST", ValueFrom: field("status.hostIP")},
				{Name: "NODE", ValueFrom: field("spec.nodeName")}, {Name: "SA", ValueFrom: field("spec.serviceAccountName")},
				{Name: "NONE", ValueFrom: field("metadata.labels['none']")},
			}},
			want: map[string]string{
				"N": "web-0", "NS": "ns", "U": "uid", "L": "web", "AN": "note", "IP": "127.64.0.2", "IPS": "127.64.0.2",
				"HOST": "127.0.0.1", "NODE": "node", "SA": "account", "NONE": "",
			},
		},
		"config maps and secrets": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{
					{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: some}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: some}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: none, Optional: &yes}},
				},
				Env: []corev1.EnvVar{
					{Name: "S", Value: "over $(P_K)"},
					{Name: "M", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: some, Key: "K"}}},
					{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: some, Key: "S"}}},
					{
						Name: "O", ValueFrom: &corev1.EnvVarSource{
							SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: some, Key: "none", Optional: &yes},
						},
					},
				},
			},
			want: map[string]string{"P_K": "from map", "S": "over from map", "M": "from map", "X": "from secret"},
		},
		"volume overrides variable of manifest": {
			container: corev1.Container{
				Command:      []string{"$(SEAMARK_VOLUME_MY_DATA)/run"},
				Env:          []corev1.EnvVar{{Name: "SEAMARK_VOLUME_MY_DATA", Value: "/data"}, {Name: "FILE", Value: "$(SEAMARK_VOLUME_MY_DATA)/file"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "my-data", MountPath: "/data"}},
			},
			want:    map[string]string{"SEAMARK_VOLUME_MY_DATA": "/run/data", "FILE": "/run/data/file"},
			command: []string{"/run/data/run"},
		},
		"manifest overrides variables of machine": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "PATH", Value: "/my"}, {Name: "HOSTNAME", Value: "me"}, {Name: "TMPDIR", Value: "/t"}}},
			want:      map[string]string{"PATH": "/my", "HOSTNAME": "me", "TMPDIR": "/t"},
		},
		"not found": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: none}}},
				Env:     []corev1.EnvVar{{Name: "F", ValueFrom: field("status.phase")}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := environ.For(&test.container, sources())
			want := environ.Environment{Variables: base(test.want), Command: test.command}
			expect.Equal(t, "environment", want, got)
		})
	}
}

func TestStatic(t *testing.T) {
	container := &corev1.Container{
		Env:          []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "IP", ValueFrom: field("status.podIP")}, {Name: "SEAMARK_VOLUME_V", Value: "/v"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
	}
	got := environ.Static([]string{"$(A)", "$(IP)", "$(SEAMARK_VOLUME_V)/x"}, container, map[string]string{"v": "/run/v"})
	expect.Equal(t, "command", []string{"a", "$(IP)", "/run/v/x"}, got)
}
