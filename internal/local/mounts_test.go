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
