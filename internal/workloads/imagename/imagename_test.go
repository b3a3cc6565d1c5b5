// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/imagename"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]imagename.Parts{
		"nginx":                            {Registry: "docker.io", Repository: "nginx", Tag: "latest"},
		"docker.io/library/nginx:1":        {Registry: "docker.io", Repository: "nginx", Tag: "1"},
		"team/app:1":                       {Registry: "docker.io", Repository: "team/app", Tag: "1"},
		"localhost:5000/app":               {Registry: "localhost:5000", Repository: "app", Tag: "latest"},
		"mirror.example/a/b:1@sha256:aa":   {Registry: "mirror.example", Repository: "a/b", Tag: "1", Digest: "sha256:aa"},
		"mirror.example:5000/a@sha256:aa":  {Registry: "mirror.example:5000", Repository: "a", Digest: "sha256:aa"},
		"mirror.example/proxy/library/app": {Registry: "mirror.example", Repository: "proxy/library/app", Tag: "latest"},
	} {
		if got := imagename.Split(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
