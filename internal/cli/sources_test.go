// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
)

const kustomization = "resources: [pod.yaml]\nnamePrefix: my-\n"

// Commands of manifests on other machines do not run unless the user permits it.
func TestRemoteManifestsAreRefused(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(clitest.OnePod))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	folder := func(base, top string) string {
		path := t.TempDir()
		clitest.WriteFiles(t, path, map[string]string{"base/kustomization.yaml": base, "top/kustomization.yaml": top, "base/pod.yaml": clitest.OnePod})
		return filepath.Join(path, "top")
	}
	const above = "resources: [../base]\n"
	url := server.URL + "/pod.yaml"
	for name, args := range map[string][]string{
		"file":                    {"-f", url},
		"kustomization":           {"-k", "https://127.0.0.1/org/repo//base?ref=v1"},
		"kustomization on GitHub": {"-k", "github.com/org/repo"},
		"resource":                {"-k", folder(kustomization, "resources: [../base, '"+url+"']\n")},
		"resource, other case":    {"-k", folder(kustomization, "Resources: [../base, '"+strings.ToUpper(url)+"']\n")},
		"resource in a base":      {"-k", folder("resources: [pod.yaml, '"+url+"']\n", above)},
		"repository":              {"-k", folder("resources: ['git@example.com:org/repo']\n", above)},
		"component":               {"-k", folder("resources: [pod.yaml]\ncomponents: ['git::https://127.0.0.1/org/repo']\n", above)},
		"patch":                   {"-k", folder("resources: [pod.yaml]\npatches: [{path: '"+url+"'}]\n", above)},
		"replacement":             {"-k", folder("resources: [pod.yaml]\nreplacements: [{path: '"+url+"'}]\n", above)},
		"patch of an older kind":  {"-k", folder("resources: [pod.yaml]\npatchesStrategicMerge: ['"+url+"']\n", above)},
		"base of an older kind":   {"-k", folder("bases: ['"+url+"']\n", above)},
		"script in a ConfigMap":   {"-k", folder("resources: [pod.yaml]\nconfigMapGenerator: [{name: a, files: ['run.sh="+url+"']}]\n", above)},
		"variables of a Secret":   {"-k", folder("resources: [pod.yaml]\nsecretGenerator: [{name: a, envs: ['"+url+"']}]\n", above)},
		"transformer":             {"-k", folder("resources: [pod.yaml]\ntransformers: ['"+url+"']\n", above)},
		"inline generator": {
			"-k", folder("generators: [\"{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: c}, envs: ['"+url+"']}\"]\n", above),
		},
		"file of a local repository": {"-k", folder("resources: ['file:///org/repo']\n", above)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{append([]string{"local", "--timeout", "1ms"}, args...), {"lint", args[1]}} {
				_, stderr, code := execute(t, "", command...)
				// A folder that does not exist is the other reason.
				refused := strings.Contains(
					stderr, "is on another machine: download and read it first",
				) || command[0] == "lint" && strings.Contains(stderr, "no such file")
				if code != exit.Usage || !refused {
					t.Errorf("%s: exit code %d, want %d: %s", command[0], code, exit.Usage, stderr)
				}
			}
		})
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("%d requests, want none", n)
	}
	remote := folder(kustomization, "resources: ['"+url+"']\n")
	if _, stderr, _ := execute(t, "", "lint", "--allow-remote", remote, url); !strings.Contains(stderr, "nothing to check") {
		t.Errorf("lint does not read what is allowed: %s", stderr)
	}
}

// TestCommandsReadTheSameFiles checks that all commands that read manifests read the same files of a folder. Each of them names
// an invalid marker.
func TestCommandsReadTheSameFiles(t *testing.T) {
	built := map[string]string{"built/kustomization.yaml": "resources: [m.yaml]\nnamePrefix: built-\n"}
	for name, test := range map[string]struct {
		content map[string]string
		read    map[string]bool
	}{
		"files": {map[string]string{
			"chart/Chart.yaml":            "name: x\n",
			"chart/values.yaml":           "kind: x\n",
			"list.yaml":                   "- a\n- b\n",
			"component/kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
		}, map[string]bool{
			"a.yaml": true, "b.yml": true, "c.json": true, "sub/deep/d.yaml": true, "chart/e.yaml": true, "component/f.yaml": true,
			"g.txt": false, "h": false, ".i.yaml": false, ".git/j.yaml": false, "chart/templates/k.yaml": false,
		}},
		"kustomization": {maps.Clone(built), map[string]bool{"built/m.yaml": true, "built/l.yaml": false, "built/sub/n.yaml": false}},
		"kustomization below files": {maps.Clone(built), map[string]bool{
			"a.yaml": true, "built/m.yaml": false, "built/l.yaml": false, "built/sub/n.yaml": false,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for path := range test.read {
				test.content[path] = "apiVersion: apps.kruise.io/v1alpha1\nkind: PodProbeMarker\n" +
					"metadata: {name: " + markerOf(path) + "}\nspec: {selector: {matchLabels: {app: x}}, probes: [" +
					"{name: p, containerName: c, podConditionType: example.com/x, probe: {exec: {command: [x]}, timeoutSeconds: -1}}]}\n"
			}
			folder := t.TempDir()
			clitest.WriteFiles(t, folder, test.content)
			for _, command := range [][]string{{"local", "--timeout", "1ms"}, {"lint"}, {"migrate", "check"}, {"test"}} {
				stdout, stderr, _ := execute(t, "", append(command, "-f", folder)...)
				for path, want := range test.read {
					marker := markerOf(path)
					if path == "built/m.yaml" {
						marker = "built-" + marker
					}
					// The commands name files, objects or both.
					got := strings.Contains(stdout+stderr, marker) || strings.Contains(stdout+stderr, path+":")
					if got != want {
						t.Errorf("%s: %s is read: %t, want %t\n%s%s", command[0], path, got, want, stdout, stderr)
					}
				}
			}
		})
	}
}

// markerOf returns the name of the marker in the file.
func markerOf(path string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(path), "."), ".")
	return "marker-" + name
}
