// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository, absolute.
var root = func() string {
	abs, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return abs
}()

// pages are the documents: README in its languages, those of the examples, and all below
// docs.
func pages(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(root, "README*.md"))
	must(t, err)
	examples, err := filepath.Glob(filepath.Join(root, "examples/*/README.md"))
	must(t, err)
	out = append(out, examples...)
	must(t, filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return err
	}))
	for i, path := range out {
		out[i], err = filepath.Rel(root, path)
		must(t, err)
	}
	if len(out) < 3 {
		t.Fatalf("found only %v", out)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// documents reads all pages. A page in another language has the commands of its original,
// see TestLanguages, and so is not run.
func documents(t *testing.T) []document {
	t.Helper()
	var out []document
	for _, path := range pages(t) {
		d, err := readDocument(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if path != "README.zh.md" {
			out = append(out, d)
		}
	}
	return out
}

// TestCommands runs the commands of the documents: without SEAMARK_CLUSTER_DIR of those
// that need no cluster, with it of those that do, the ones that change the installation last.
func TestCommands(t *testing.T) {
	clusterDir := os.Getenv("SEAMARK_CLUSTER_DIR")
	kinds := []string{needsLocal}
	if clusterDir != "" {
		kinds = []string{needsCluster, needsInstallation}
	}
	w := newWorkplace(t, clusterDir)
	all := documents(t)
	for _, kind := range kinds {
		for _, d := range all {
			if d.needs == kind {
				t.Run(d.name(), func(t *testing.T) { w.follow(t, d) })
			}
		}
	}
}

// follow runs the commands of a document.
func (w *workplace) follow(t *testing.T, d document) {
	if d.needs == needsInstallation {
		t.Cleanup(func() { w.reinstall(t) })
	}
	env := w.environment(t, d)
	s, err := newShell(t.TempDir(), env)
	must(t, err)
	defer s.close()
	defer func() {
		for _, c := range d.finally {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), defaultTimeout)
			// A shell of its own: that of the document may have ended.
			if out, err := rooted(ctx, env, "bash", "-euo", "pipefail", "-c", c.source).CombinedOutput(); err != nil {
				t.Errorf("%s:%d: finally: %s\n%v\n%s", d.path, c.line, c.source, err, out)
			}
			cancel()
		}
	}()
	for _, st := range d.steps {
		if st.notRun != "" {
			t.Logf("%s:%d: not run: %s", d.path, st.line, st.notRun)
			continue
		}
		for i, c := range st.commands {
			last := i == len(st.commands)-1
			if err := w.command(t, s, st, c, last); err != nil {
				t.Fatalf("%s:%d: $ %s\n%v", d.path, c.line, c.source, err)
			}
		}
	}
}

// command runs one command, unless make runs it elsewhere.
func (w *workplace) command(t *testing.T, s *shell, st step, c command, last bool) error {
	targets := c.makeTargets()
	if !st.hidden && len(targets) > 0 && !slices.ContainsFunc(targets, func(target string) bool { return covered[target] == "" }) {
		for _, target := range targets {
			t.Logf("make %s is run by %s", target, covered[target])
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), st.timeout)
	defer cancel()
	if st.interrupt && last {
		return s.interrupted(ctx, c)
	}
	return s.perform(ctx, c, st.fails && last)
}

// rooted is a command in the root of the repository.
func rooted(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = root, env
	return c
}

// The targets that covered names exist, and so do those that documents name.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	must(t, err)
	exists := func(target string) bool { return strings.Contains("\n"+string(makefile), "\n"+target+":") }
	for target := range covered {
		if !exists(target) {
			t.Errorf("covered names make %s, which the Makefile does not have", target)
		}
	}
	for _, d := range documents(t) {
		for _, st := range d.steps {
			for _, c := range st.commands {
				for _, target := range c.makeTargets() {
					if !exists(target) {
						t.Errorf("%s:%d: make %s is not in the Makefile", d.path, c.line, target)
					}
				}
			}
		}
	}
}

// name is the document's name as a test.
func (d document) name() string {
	return strings.ReplaceAll(strings.TrimPrefix(d.path, "docs/"), "/", "-")
}
