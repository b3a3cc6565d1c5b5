// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

const (
	deploymentYAML = `# A comment.
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: games, namespace: arena}
spec: {selector: {matchLabels: {app: games}}}
`
	markerYAML = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: idle, namespace: arena}
`
)

func TestReadExample(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		// refusal is a part of the error, or empty if there is none.
		refusal string
	}{
		"two files":          {map[string]string{"d.yaml": deploymentYAML, "m.yaml": markerYAML, "README.md": "no YAML: ["}, ""},
		"one file":           {map[string]string{"all.yaml": deploymentYAML + "---\n" + markerYAML}, ""},
		"with kustomize":     {map[string]string{"all.yaml": deploymentYAML + "---\n" + markerYAML, "kustomization.yaml": "kind: Kustomization\n"}, ""},
		"nothing":            {nil, "Deployment and a PodProbeMarker"},
		"no marker":          {map[string]string{"d.yaml": deploymentYAML}, "Deployment and a PodProbeMarker"},
		"two deployments":    {map[string]string{"d.yaml": deploymentYAML, "e.yaml": deploymentYAML}, "second Deployment"},
		"two markers":        {map[string]string{"d.yaml": markerYAML, "e.yaml": markerYAML}, "second PodProbeMarker"},
		"not YAML":           {map[string]string{"d.yaml": "kind: ["}, "d.yaml"},
		"no usable selector": {map[string]string{"d.yaml": strings.Replace(deploymentYAML, "app: games", "app: 'a b'", 1)}, "selector"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, content := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e, err := readExample(folder)
			if test.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), test.refusal) {
					t.Errorf("error %v, want one with %q", err, test.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.namespace != "arena" || e.deployment != "games" || e.marker != "idle" || len(e.objects) != 2 {
				t.Errorf("got %+v", e)
			}
			if !e.pods.Matches(labels.Set{"app": "games"}) || e.pods.Matches(labels.Set{"app": "other"}) {
				t.Errorf("selects %s", e.pods)
			}
		})
	}
}

// TestReadGameServer reads the example that the demo uses by default.
func TestReadGameServer(t *testing.T) {
	if _, err := readExample("../../examples/game-server"); err != nil {
		t.Error(err)
	}
}
