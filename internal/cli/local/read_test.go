// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

const kustomization = "resources: [pod.yaml]\nnamePrefix: my-\n"

func TestKustomization(t *testing.T) {
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600),
		os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte(clitest.OnePod), 0o600)); err != nil {
		t.Fatal(err)
	}
	objects, err := (&Options{Kustomize: folder, Replicas: -1}).read(t.Context())
	if err != nil || len(objects.Pods) != 1 || objects.Pods[0].Name != "my-web" {
		t.Errorf("got %v and error %v, want pod my-web", objects.Pods, err)
	}
	if _, err := files.Build(t.TempDir(), false); err == nil || !strings.HasPrefix(err.Error(), "build kustomization ") {
		t.Errorf("error without a kustomization: %v", err)
	}
}

// What is on another machine is read if the user permits it.
func TestRemotePartIsAllowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(clitest.OnePod)) }))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	path := t.TempDir()
	clitest.WriteFiles(t, path, map[string]string{
		"base/kustomization.yaml": kustomization, "top/kustomization.yaml": "resources: ['" + server.URL + "/pod.yaml']\n", "base/pod.yaml": clitest.OnePod,
	})
	allowed := &Options{Kustomize: filepath.Join(path, "top"), AllowRemote: true, Replicas: -1}
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
		_, _ = w.Write([]byte(clitest.OnePod))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	objects, err := (&Options{Filenames: []string{server.URL + "/pod.yaml"}, AllowRemote: true, Replicas: -1}).read(t.Context())
	if err != nil || len(objects.Pods) != 1 {
		t.Errorf("got %v and error %v, want one pod", objects.Pods, err)
	}
	_, err = (&Options{Filenames: []string{server.URL + "/none"}, AllowRemote: true, Replicas: -1}).read(t.Context())
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
