// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestDefaultInstallationIsAccepted renders config/default as kubectl apply -k does.
func TestDefaultInstallationIsAccepted(t *testing.T) {
	t.Parallel()
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", "default"))
	expect.NoError(t, err)
	text, err := rendered.AsYaml()
	expect.NoError(t, err)
	objects, err := env.ParseManifests(text)
	expect.NoError(t, err)
	e := env.Start(t, env.NoCRDs())
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		e.Apply(t, object)
	}
	for kind, want := range map[string]int{"CustomResourceDefinition": 4, "Deployment": 1, "DaemonSet": 1, "ServiceAccount": 2} {
		if kinds[kind] != want {
			t.Errorf("config/default has %d objects of kind %s, want %d", kinds[kind], kind, want)
		}
	}
}
