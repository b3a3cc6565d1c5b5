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
	"time"
)

// slow is the duration from which a command is logged with it.
const slow = 2 * time.Second

// root is the absolute path of the repository's root.
var root = func() string {
	abs, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return abs
}()

// pages returns the paths of the documents: those in the root of the repository, the index and the
// READMEs of the examples, and all pages below docs.
func pages(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(root, "*.md"))
	must(t, err)
	examples, err := filepath.Glob(filepath.Join(root, "examples/*/README.md"))
	must(t, err)
	recipes, err := filepath.Glob(filepath.Join(root, "examples/recipes/*/README.md"))
	must(t, err)
	out = append(out, filepath.Join(root, "examples/README.md"))
	out = append(append(out, examples...), recipes...)
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
		t.Fatalf("found %d documents, want at least 3: %v", len(out), out)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// documents reads all pages, except translations: they have the same commands as the
// original (see TestTranslations).
func documents(t *testing.T) []document {
	t.Helper()
	var out []document
	for _, path := range pages(t) {
		d, err := readDocument(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if !translated(path) {
			out = append(out, d)
		}
	}
	return out
}

// TestCommands runs the commands of the documents. If SEAMARK_CLUSTER_DIR is unset, it runs
// the documents that need no cluster. If SEAMARK_RECIPES names recipes, it runs theirs. Otherwise, it runs those that
// only use the cluster at the same time, then those that disturb others, and last the ones that change the installation.
func TestCommands(t *testing.T) {
	clusterDir := os.Getenv("SEAMARK_CLUSTER_DIR")
	kinds := []string{needsLocal}
	if clusterDir != "" {
		kinds = []string{needsCluster, needsAlone, needsInstallation}
	}
	recipes := strings.Fields(os.Getenv("SEAMARK_RECIPES"))
	if len(recipes) > 0 {
		kinds = []string{needsRecipe}
	}
	w := newWorkspace(t, clusterDir)
	all := documents(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for _, d := range all {
				if d.needs == needsRecipe && !slices.Contains(recipes, filepath.Base(filepath.Dir(d.path))) {
					t.Logf("%s: not run: `make test-recipes` runs it, with the image of the recipe", d.path)
					continue
				}
				if d.needs != kind {
					continue
				}
				t.Run(d.name(), func(t *testing.T) {
					if kind == needsCluster {
						t.Parallel()
					}
					w.run(t, d)
				})
			}
		})
	}
}

func (w *workspace) run(t *testing.T, d document) {
	t.Cleanup(func() {
		if d.needs == needsInstallation || d.needs == needsAlone && t.Failed() {
			w.reinstall(t)
		}
	})
	env := w.environment(t, d)
	s, err := newShell(t.TempDir(), env)
	must(t, err)
	defer s.close()
	defer func() {
		for _, c := range d.finally {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), defaultTimeout)
			// A separate shell: the document's shell may have exited.
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
			last, start := i == len(st.commands)-1, time.Now()
			if err := w.command(t, s, st, c, last); err != nil {
				t.Fatalf("%s:%d: $ %s\n%v", d.path, c.line, c.source, err)
			}
			if took := time.Since(start); took > slow {
				t.Logf("%s:%d: %.1f s: $ %s", d.path, c.line, took.Seconds(), c.source)
			}
		}
	}
}

// command runs one command, unless it only makes targets that are covered elsewhere.
func (w *workspace) command(t *testing.T, s *shell, st step, c command, last bool) error {
	targets := c.makeTargets()
	if !st.hidden && len(targets) > 0 && !slices.ContainsFunc(targets, func(target string) bool { return covered[target] == "" }) {
		for _, target := range targets {
			t.Logf("make %s is covered by %s", target, covered[target])
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

// rooted returns a command that runs in the repository's root.
func rooted(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = root, env
	return c
}

// TestMakeTargetsExist checks the targets in covered and those that documents use.
func TestMakeTargetsExist(t *testing.T) {
	targets := "\n" + makefiles(t)
	exists := func(target string) bool { return strings.Contains(targets, "\n"+target+":") }
	for target := range covered {
		if !exists(target) {
			t.Errorf("covered lists make %s, which is not a target", target)
		}
	}
	for _, d := range documents(t) {
		for _, st := range d.steps {
			for _, c := range st.commands {
				for _, target := range c.makeTargets() {
					if !exists(target) {
						t.Errorf("%s:%d: make %s is not a target", d.path, c.line, target)
					}
				}
			}
		}
	}
}

// name returns the name of the document's subtest.
func (d document) name() string {
	return strings.ReplaceAll(strings.TrimPrefix(d.path, "docs/"), "/", "-")
}
