// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/test/integration/env"
)

func TestExamplesAreAccepted(t *testing.T) {
	t.Parallel()
	root, err := env.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		// These are the sources of the examples' images.
		if entry.Name() == "server" || entry.Name() == "database" {
			continue
		}
		seen++
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			objects, err := env.ReadManifests(filepath.Join("examples", entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			namespace := server.Namespace(t)
			markers := 0
			for _, object := range objects {
				if object.GetKind() == "PodProbeMarker" {
					markers++
				}
				object.SetNamespace(namespace)
				if err := create(t.Context(), object); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
			if len(objects) == 0 {
				t.Error("the example has no objects")
			}
			// The example probes has pods with the kubelet's own probes.
			if markers == 0 && entry.Name() != "probes" {
				t.Error("the example has no PodProbeMarker")
			}
		})
	}
	if seen == 0 {
		t.Error("no examples found")
	}
}

// TestDefaultInstallationIsAccepted renders config/default as kubectl apply -k does.
func TestDefaultInstallationIsAccepted(t *testing.T) {
	t.Parallel()
	root, err := env.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := env.ParseManifests(text)
	if err != nil {
		t.Fatal(err)
	}
	e := env.Start(t, env.NoCRDs())
	kinds := map[string]int{}
	for _, object := range objects {
		kinds[object.GetKind()]++
		e.Apply(t, object)
	}
	for kind, want := range map[string]int{"CustomResourceDefinition": 3, "Deployment": 1, "DaemonSet": 1, "ServiceAccount": 2} {
		if kinds[kind] != want {
			t.Errorf("config/default has %d objects of kind %s, want %d", kinds[kind], kind, want)
		}
	}
}
