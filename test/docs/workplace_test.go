// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// workplace is what the readers of all documents have on their machine.
type workplace struct {
	// bin is the folder of the programs.
	bin string
	// clusterDir is the folder that hack/cluster keeps the cluster in, empty without one.
	clusterDir string
}

// helm adds what only the local cluster needs to the commands that take values.
const helm = `#!/bin/bash
set -euo pipefail
more=()
case ${1-} in install | upgrade | template) mapfile -t more < <(make -s --no-print-directory -C %q CLUSTER_DIR=%q local-values) ;; esac
exec %q "$@" "${more[@]}"
`

func newWorkplace(t *testing.T, clusterDir string) *workplace {
	t.Helper()
	w := &workplace{bin: t.TempDir()}
	for name, source := range map[string]string{
		"seamark": "./cmd/seamark", "seamark-manager": "./cmd/seamark-manager", "seamark-agent": "./cmd/seamark-agent",
		"example-server": "./examples/server",
	} {
		w.must(t, os.Environ(), "go", "build", "-o", filepath.Join(w.bin, name), source)
	}
	if clusterDir == "" {
		return w
	}
	var err error
	w.clusterDir, err = filepath.Abs(clusterDir)
	must(t, err)
	for _, tool := range []string{"helm", "kustomize"} {
		path := w.tool(t, tool)
		if tool == "helm" {
			script := fmt.Sprintf(helm, root, w.clusterDir, path)
			must(t, os.WriteFile(filepath.Join(w.bin, tool), []byte(script), 0o755))
			continue
		}
		must(t, os.Symlink(path, filepath.Join(w.bin, tool)))
	}
	return w
}

// tool builds a pinned tool and returns where it is.
func (w *workplace) tool(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(w.must(t, os.Environ(), "go", "tool", "-modfile=hack/tools/go.mod", "-n", name))
}

// environment is the one of a document: for one that needs a cluster, with a namespace of
// its own, which goes when the test ends.
func (w *workplace) environment(t *testing.T, d document) []string {
	t.Helper()
	path := []string{w.bin}
	if w.clusterDir != "" {
		path = append(path, filepath.Join(w.clusterDir, "bin"))
	}
	env := append(os.Environ(), "PATH="+strings.Join(append(path, os.Getenv("PATH")), ":"), "HOME="+t.TempDir(),
		// With another HOME, Go would build all anew.
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPATH="+goEnv(t, "GOPATH"))
	if d.needs == needsLocal {
		return env
	}
	kubeconfig, err := os.ReadFile(filepath.Join(w.clusterDir, "kubeconfig"))
	must(t, err)
	own := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(own, kubeconfig, 0o600))
	env = append(env, "KUBECONFIG="+own)
	name := strings.ToLower(strings.TrimSuffix(d.name(), ".md"))
	namespace := "docs-" + strings.NewReplacer(".", "-", "_", "-").Replace(name)
	kubectl := filepath.Join(w.clusterDir, "bin", "kubectl")
	// What a run that was killed has left.
	w.must(t, env, kubectl, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m")
	w.must(t, env, kubectl, "create", "namespace", namespace)
	w.must(t, env, kubectl, "config", "set-context", "--current", "--namespace="+namespace)
	t.Cleanup(func() { w.must(t, env, kubectl, "delete", "namespace", namespace, "--wait=false") })
	return env
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// reinstall leaves Seamark installed as `make install` does.
func (w *workplace) reinstall(t *testing.T) {
	t.Helper()
	w.must(t, os.Environ(), "make", "--no-print-directory", "CLUSTER_DIR="+w.clusterDir, "install")
}

// must runs a command and returns its standard output.
func (w *workplace) must(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := rooted(context.WithoutCancel(t.Context()), env, name, args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}
