// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKubernetesModule(t *testing.T) {
	const original = `module k8s.io/kubernetes

go 1.23.0

godebug default=go1.23

require (
	example.org/a v1.2.3
	k8s.io/api v0.0.0
	k8s.io/sample-controller v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/cri-api => ./staging/src/k8s.io/cri-api
	k8s.io/cri-client => ./staging/src/k8s.io/cri-client
	k8s.io/sample-controller => ./staging/src/k8s.io/sample-controller
)
`
	const want = `module seamark.dev/kubernetes

go 1.23.0

godebug default=go1.23

require (
	example.org/a v1.2.3
	k8s.io/api v0.0.0
	k8s.io/kubernetes v1.32.4
)

replace (
	k8s.io/api => k8s.io/api v0.32.4
	k8s.io/cri-api => k8s.io/cri-api v0.32.3
	k8s.io/cri-client => /tmp/cri-client
)
`
	got, err := kubernetesModule([]byte(original), "v1.32.4", map[string]string{
		"k8s.io/cri-api": "v0.32.3", "k8s.io/cri-client": "/tmp/cri-client",
	})
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("error %v, go.mod (-want +got):\n%s", err, diff)
	}
}

func TestKubernetesVersionIsAMinor(t *testing.T) {
	for _, version := range []string{"", "1", "v1.32", "1.32.4", "latest"} {
		_, err := WriteKubernetes(t.Context(), t.TempDir(), version, nil)
		if err == nil || !strings.Contains(err.Error(), "must be a minor version such as 1.32") {
			t.Errorf("version %q: error %v", version, err)
		}
	}
}
