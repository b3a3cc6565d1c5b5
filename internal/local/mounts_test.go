// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestNamedMounts(t *testing.T) {
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data/"}, {Name: "sub", MountPath: "/data/sub"}, {Name: "root", MountPath: "/"}}
	for text, want := range map[string]string{
		"/data":                           "data",
		"cat: /data/x: No such file":      "data",
		"open '/data/sub/x'":              "sub",
		"--data=/data --sub=/data/sub":    "sub data",
		"cannot read /data.":              "data",
		"/data2 /data.d /my/data":         "",
		"relative/data ./data":            "",
		"https://example.com/data":        "",
		"PATH=/bin:/data":                 "data",
		"${SEAMARK_VOLUME_DATA:-/data}":   "",
		"$SEAMARK_VOLUME_DATA2 /data/x":   "data",
		"$SEAMARK_VOLUME_DATA:-$D\n/data": "",
		"":                                "",
	} {
		var names []string
		for _, mount := range named(mounts, strings.Split(text, "\n")) {
			names = append(names, mount.Name)
		}
		expect.Equal(t, fmt.Sprintf("%q names the mounts", text), want, strings.Join(names, " "))
	}
}

func TestIsAbsent(t *testing.T) {
	mounts := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}
	path := corev1.Container{Env: []corev1.EnvVar{{Name: "PATH", Value: "/bin"}}}
	from := func(name string) corev1.Container {
		reference := corev1.LocalObjectReference{Name: name}
		return corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}}}}
	}
	objects := &manifest.Objects{ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{
		{Name: "path"}: {Data: map[string]string{"PATH": "/bin"}}, {Name: "other"}: {Data: map[string]string{"OTHER": "/bin"}},
	}}
	for name, test := range map[string]struct {
		container corev1.Container
		init      []corev1.Container
		program   string
		want      bool
	}{
		"in PATH":                            {program: "sh"},
		"not in PATH":                        {program: "no-such-program", want: true},
		"file":                               {program: "/bin/sh"},
		"no file":                            {program: "/missing/program", want: true},
		"other PATH":                         {container: path, program: "no-such-program"},
		"PATH of a ConfigMap":                {container: from("path"), program: "no-such-program"},
		"other ConfigMap":                    {container: from("other"), program: "no-such-program", want: true},
		"file, after init containers":        {init: make([]corev1.Container, 1), program: "/missing/program"},
		"not in PATH, after init containers": {init: make([]corev1.Container, 1), program: "no-such-program", want: true},
		"variable":                           {program: "$(NO_SUCH)/program"},
		"in a volume":                        {container: mounts, program: "/data/program"},
		"below folder":                       {program: "./program"},
	} {
		if got := isAbsent(objects, &corev1.Pod{Spec: corev1.PodSpec{InitContainers: test.init}}, &test.container, []string{test.program}); got != test.want {
			t.Errorf("%s: absent %t, want %t", name, got, test.want)
		}
	}
}
