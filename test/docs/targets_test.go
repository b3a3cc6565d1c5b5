// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makefiles returns the Makefile and the files in hack/make, which it includes.
func makefiles(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "hack/make/*.mk"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("hack/make has no files")
	}
	var out strings.Builder
	for _, file := range append(files, filepath.Join(root, "Makefile")) {
		content, err := os.ReadFile(file)
		must(t, err)
		out.Write(content)
	}
	return out.String()
}

// TestEveryPackageIsTested checks that a target names each package of the module that has tests, or a pattern for it.
func TestEveryPackageIsTested(t *testing.T) {
	patterns := regexp.MustCompile(`\./[a-z][\w./*-]*`).FindAllString(makefiles(t), -1)
	list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./...")
	list.Dir = root
	output, err := list.Output()
	must(t, err)
	folders := strings.Fields(string(output))
	if len(folders) == 0 {
		t.Fatal("no package has tests")
	}
	for _, folder := range folders {
		name, err := filepath.Rel(root, folder)
		must(t, err)
		if !slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, name) }) {
			t.Errorf("no target of make runs the tests of ./%s", name)
		}
	}
}

// covers reports whether a pattern, as ./a/..., ./a/*/ or ./a, covers the folder.
func covers(pattern, folder string) bool {
	pattern = strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/")
	if parent, below := strings.CutSuffix(pattern, "/..."); below {
		return folder == parent || strings.HasPrefix(folder, parent+"/")
	}
	matches, err := path.Match(pattern, folder)
	return err == nil && matches
}
