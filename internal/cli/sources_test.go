// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

const kustomization = "resources: [pod.yaml]\nnamePrefix: my-\n"

func TestKustomization(t *testing.T) {
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600),
		os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte(onePod), 0o600)); err != nil {
		t.Fatal(err)
	}
	objects, err := (&localOptions{Kustomize: folder, Replicas: -1}).read(t.Context())
	if err != nil || len(objects.Pods) != 1 || objects.Pods[0].Name != "my-web" {
		t.Errorf("got %v and error %v, want pod my-web", objects.Pods, err)
	}
	if _, err := files.Build(t.TempDir(), false); err == nil || !strings.HasPrefix(err.Error(), "build kustomization ") {
		t.Errorf("error without a kustomization: %v", err)
	}
}

// Commands of manifests on other machines do not run unless the user permits it.
func TestRemoteManifestsAreRefused(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(onePod))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	folder := func(base, top string) string {
		path := t.TempDir()
		clitest.WriteFiles(t, path, map[string]string{"base/kustomization.yaml": base, "top/kustomization.yaml": top, "base/pod.yaml": onePod})
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
	allowed := &localOptions{Kustomize: remote, AllowRemote: true, Replicas: -1}
	objects, err := allowed.read(t.Context())
	if err != nil || len(objects.Pods) != 1 {
		t.Errorf("got %v and error %v, want one pod", objects.Pods, err)
	}
}

func TestURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pod.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(onePod))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	objects, err := (&localOptions{Filenames: []string{server.URL + "/pod.yaml"}, AllowRemote: true, Replicas: -1}).read(t.Context())
	if err != nil || len(objects.Pods) != 1 {
		t.Errorf("got %v and error %v, want one pod", objects.Pods, err)
	}
	_, err = (&localOptions{Filenames: []string{server.URL + "/none"}, AllowRemote: true, Replicas: -1}).read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "/none: server answered 404 Not Found") {
		t.Errorf("error for a missing file: %v", err)
	}
}

func TestParseCommands(t *testing.T) {
	for name, test := range map[string]struct {
		values []string
		want   map[string]string
		err    string
	}{
		"none":            {want: map[string]string{}},
		"command":         {values: []string{"main=sleep 1; A=b run"}, want: map[string]string{"main": "sleep 1; A=b run"}},
		"no container":    {values: []string{"=run"}, err: `--command: "=run" is invalid: must be CONTAINER='COMMAND'`},
		"no command":      {values: []string{"main"}, err: `--command: "main" is invalid: must be CONTAINER='COMMAND'`},
		"given two times": {values: []string{"main=a", "main=b"}, err: `--command: container "main" has two commands`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseCommands(test.values)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || message != test.err {
				t.Errorf("error %q, want %q; commands (-want +got):\n%s", message, test.err, diff)
			}
		})
	}
}
