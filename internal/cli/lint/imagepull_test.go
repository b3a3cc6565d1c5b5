// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/test/expect"
)

const imagePullJob = `apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata:
  name: pull
spec:
  image: game:1
  parallelism: 10%
`

func TestImagePullJobs(t *testing.T) {
	e := func(edits ...string) string { return edited(t, imagePullJob, edits...) }
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"valid":   {manifest: imagePullJob},
		"v1beta1": {manifest: e("v1alpha1", "v1beta1")},
		"sandbox": {
			manifest: e("parallelism: 10%", "sandboxConfig: {}"),
			want: []string{
				"a.yaml:7:3 schema spec.sandboxConfig: Invalid value: is not supported: the sandbox of a pull is that of the kubelet, configure the runtime of the nodes",
			},
		},
		"unknown field": {
			manifest: e("parallelism", "paralelism"),
			want:     []string{"a.yaml:7:3 unknown-field spec.paralelism: unknown field -> did you mean \"parallelism\"?"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "findings", test.want, check(t, &lint.Linter{}, test.manifest))
		})
	}
}
