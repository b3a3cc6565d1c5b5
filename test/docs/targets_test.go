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

// TestEveryPackageIsTested checks that the Makefile names each package of the module that has tests, or a pattern for it.
func TestEveryPackageIsTested(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	must(t, err)
	patterns := regexp.MustCompile(`\./[a-z][\w./*-]*`).FindAllString(string(makefile), -1)
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
			t.Errorf("no target of the Makefile runs the tests of ./%s", name)
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
