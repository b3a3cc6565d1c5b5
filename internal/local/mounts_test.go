// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNamedMounts(t *testing.T) {
	mounts := []corev1.VolumeMount{{Name: "data", MountPath: "/data/"}, {Name: "sub", MountPath: "/data/sub"}, {Name: "root", MountPath: "/"}}
	for text, want := range map[string]string{
		"/data":                         "data",
		"cat: /data/x: No such file":    "data",
		"open '/data/sub/x'":            "sub",
		"--data=/data --sub=/data/sub":  "sub data",
		"cannot read /data.":            "data",
		"/data2 /data.d /my/data":       "",
		"relative/data ./data":          "",
		"https://example.com/data":      "",
		"PATH=/bin:/data":               "data",
		"${SEAMARK_VOLUME_DATA:-/data}": "",
		"":                              "",
	} {
		var names []string
		for _, mount := range named(mounts, []string{text}) {
			names = append(names, mount.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q names the mounts %q, want %q", text, got, want)
		}
	}
}

func TestIsAbsent(t *testing.T) {
	mounts := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}
	path := corev1.Container{Env: []corev1.EnvVar{{Name: "PATH", Value: "/bin"}}}
	for name, test := range map[string]struct {
		container corev1.Container
		program   string
		want      bool
	}{
		"in PATH":      {program: "sh"},
		"not in PATH":  {program: "no-such-program", want: true},
		"file":         {program: "/bin/sh"},
		"no file":      {program: "/missing/program", want: true},
		"other PATH":   {container: path, program: "no-such-program"},
		"variable":     {program: "$(NO_SUCH)/program"},
		"in a volume":  {container: mounts, program: "/data/program"},
		"below folder": {program: "./program"},
	} {
		if got := isAbsent(&test.container, []string{test.program}); got != test.want {
			t.Errorf("%s: absent %t, want %t", name, got, test.want)
		}
	}
}
