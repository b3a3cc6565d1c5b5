// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BinariesVariable is the name of the environment variable with the folder of etcd and
// kube-apiserver. The default is .cluster/bin in the module's root.
const BinariesVariable = "SEAMARK_CLUSTER_BIN"

const modulePath = "github.com/seamark-dev/seamark"

// ModuleRoot returns the folder of the module's go.mod. It searches from the working
// directory upwards, which in a test is the folder of its package.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module's root: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil:
			first, _, _ := strings.Cut(string(content), "\n")
			if strings.TrimSpace(first) == "module "+modulePath {
				return dir, nil
			}
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find the module's root: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module's root: no go.mod of %s in %s or its parents", modulePath, start)
		}
	}
}

// Binaries returns the folder that holds etcd and kube-apiserver.
func Binaries() (string, error) {
	dir := os.Getenv(BinariesVariable)
	if dir == "" {
		root, err := ModuleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, ".cluster", "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("no %s in %s: build it with `make test-integration`, or with "+
				"`go -C hack/cluster run . build --only etcd,kube-apiserver --dir \"$PWD/.cluster\"`, "+
				"or set %s to a folder that holds etcd and kube-apiserver: %w", name, dir, BinariesVariable, err)
		}
	}
	return dir, nil
}

// wrapper is a script that starts a program. The kernel kills the program when the test
// process ends, because a test process that panics, times out or is killed can't do it. The
// signal is KILL: an API server that is terminated together with its etcd may wait forever.
const wrapper = `#!/bin/sh
exec %s --pdeathsig KILL -- %s "$@"
`

type wrappedBinaries struct{ etcd, apiServer string }

// wrapBinaries writes start scripts for the programs in the folder bin and returns their
// paths. If the machine has no setpriv, it returns the paths of the programs.
func wrapBinaries(bin, dir string) (wrappedBinaries, error) {
	wrapped := wrappedBinaries{
		etcd:      filepath.Join(bin, "etcd"),
		apiServer: filepath.Join(bin, "kube-apiserver"),
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return wrapped, nil //nolint:nilerr // The programs also run without it.
	}
	for _, path := range []*string{&wrapped.etcd, &wrapped.apiServer} {
		script := filepath.Join(dir, filepath.Base(*path))
		text := fmt.Sprintf(wrapper, quote(setpriv), quote(*path))
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // It is a program.
			return wrappedBinaries{}, fmt.Errorf("write the start script of %s: %w", filepath.Base(*path), err)
		}
		*path = script
	}
	return wrapped, nil
}

// quote quotes text as one word for the shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
