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

	"github.com/seamark-dev/seamark/test/process"
)

// workspace holds what the commands of all documents use.
type workspace struct {
	// bin is the folder of built programs.
	bin string
	// clusterDir is the folder of the local cluster, or empty.
	clusterDir string
}

// helm is a wrapper that adds the local cluster's values to the commands that accept values.
const helm = `#!/bin/bash
set -euo pipefail
more=()
case ${1-} in install | upgrade | template) mapfile -t more < <(make -s --no-print-directory -C %q CLUSTER_DIR=%q local-values) ;; esac
exec %q "$@" "${more[@]}"
`

func newWorkspace(t *testing.T, clusterDir string) *workspace {
	t.Helper()
	w := &workspace{bin: t.TempDir()}
	target, programs := "test-local", []string{"seamark", "seamark-manager", "seamark-agent", "example-server", "example-database"}
	if clusterDir != "" {
		target, programs = "test-docs", append(programs, "kustomize")
	}
	for _, name := range programs {
		path, err := process.Built(name, target)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(w.bin, name)))
	}
	if clusterDir == "" {
		return w
	}
	var err error
	w.clusterDir, err = filepath.Abs(clusterDir)
	must(t, err)
	path, err := process.Built("helm", target)
	must(t, err)
	script := fmt.Sprintf(helm, root, w.clusterDir, path)
	must(t, os.WriteFile(filepath.Join(w.bin, "helm"), []byte(script), 0o755))
	return w
}

// environment returns the environment of a document. If the document needs a cluster, it
// creates a namespace, which is deleted when the test ends.
func (w *workspace) environment(t *testing.T, d document) []string {
	t.Helper()
	path := []string{w.bin}
	if w.clusterDir != "" {
		path = append(path, filepath.Join(w.clusterDir, "bin"))
	}
	env := append(os.Environ(), "PATH="+strings.Join(append(path, os.Getenv("PATH")), ":"), "HOME="+t.TempDir(),
		// With another HOME, Go would not find its caches.
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
	// A killed run may have left it.
	w.must(t, env, kubectl, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m")
	w.must(t, env, kubectl, "create", "namespace", namespace)
	// An earlier document may have restarted the programs, and commands select one of their pods.
	for _, workload := range []string{"deployment/seamark-manager", "deployment/seamark-workloads", "daemonset/seamark-agent"} {
		w.must(t, env, kubectl, "-n", "seamark-system", "rollout", "status", workload, "--timeout=2m")
	}
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
func (w *workspace) reinstall(t *testing.T) {
	t.Helper()
	w.must(t, os.Environ(), "make", "--no-print-directory", "CLUSTER_DIR="+w.clusterDir, "install")
}

// must runs a command and returns its standard output.
func (w *workspace) must(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	return process.Output(t, rooted(context.WithoutCancel(t.Context()), env, name, args...))
}
