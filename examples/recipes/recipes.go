// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recipes embeds the recipes: for each real program, a marker, a workload that acts on it, a guard, and a page that
// explains them. test/recipes runs the same files.
package recipes

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed */README.md */*.yaml */players/*.yaml
var files embed.FS

// Names returns the names of the recipes in alphabetical order.
func Names() []string {
	found, _ := fs.Glob(files, "*/README.md")
	names := make([]string, len(found))
	for i, file := range found {
		names[i] = path.Dir(file)
	}
	return names
}

// Title returns the title of the page of a recipe.
func Title(name string) string {
	page, _ := files.ReadFile(path.Join(name, "README.md"))
	title, _, _ := strings.Cut(string(page), "\n")
	return strings.TrimPrefix(title, "# ")
}

// Files returns the files of a recipe, and whether there is one with this name.
func Files(name string) (fs.FS, bool) {
	if path.Base(name) != name || name == "." {
		return nil, false
	}
	folder, err := fs.Sub(files, name)
	if err != nil {
		return nil, false
	}
	_, err = fs.Stat(folder, "README.md")
	return folder, err == nil
}
