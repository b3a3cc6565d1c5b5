// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package initialize

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/seamark-dev/seamark/examples/recipes"
	"github.com/seamark-dev/seamark/internal/cli/exit"
)

// repository is where the links of a recipe lead that are relative in the repository.
const repository = "https://github.com/seamark-dev/seamark/blob/main/"

// listRecipes prints the names and titles of the recipes.
func (o *Options) listRecipes() error {
	table := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tWHAT IT SHOWS")
	for _, name := range recipes.Names() {
		fmt.Fprintf(table, "%s\t%s\n", name, recipes.Title(name))
	}
	return exit.Failure(table.Flush())
}

// writeRecipe creates a folder with the files of the recipe.
func (o *Options) writeRecipe() error {
	files, exists := recipes.Files(o.Recipe)
	if !exists {
		return fmt.Errorf("--recipe: %q does not exist: must be one of %s", o.Recipe, strings.Join(recipes.Names(), ", "))
	}
	folder := cmp.Or(o.File, o.Recipe)
	// All files, or none: with a part of them, the next attempt would fail at these.
	paths := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return exit.Failure(err)
		}
		paths[name] = filepath.Join(folder, name)
		if _, err := os.Lstat(paths[name]); err == nil && !o.Force {
			return existsError(paths[name])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, path := range paths {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return exit.Failure(fmt.Errorf("read recipe: %w", err))
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return exit.Failure(fmt.Errorf("--output: %w", err))
		}
		content = bytes.ReplaceAll(content, []byte("](../../../"), []byte("]("+repository))
		content = bytes.ReplaceAll(content, []byte("examples/recipes/"+o.Recipe), []byte(folder))
		if err := o.create(path, content); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.ErrOut, "Wrote %s. Read %s first, and set your image.\n", folder, filepath.Join(folder, "README.md"))
	return nil
}
