// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	goast "go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitecture checks that the rooms of docs/architecture.md are those of internal, and that its
// functions and files exist.
func TestArchitecture(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	must(t, err)
	code := regexp.MustCompile("`([^`]+)`")
	var rooms []string
	functions := 0
	for line := range strings.Lines(string(source)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") {
			cells = nil
		}
		if len(cells) == 2 {
			rooms = append(rooms, code.FindStringSubmatch(cells[0])[1])
		}
		if len(cells) == 3 {
			declared := declarations(t, filepath.Join(root, "internal", code.FindStringSubmatch(cells[0])[1]))
			for _, name := range code.FindAllStringSubmatch(cells[1], -1) {
				functions++
				if !slices.Contains(declared, name[1]) {
					t.Errorf("%s%s is not declared", line, name[1])
				}
			}
		}
		for _, name := range code.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(filepath.Join(root, name[1])); strings.HasPrefix(name[1], "internal/") && err != nil {
				t.Errorf("%s does not exist", name[1])
			}
		}
	}
	folders, err := os.ReadDir(filepath.Join(root, "internal"))
	must(t, err)
	for _, folder := range folders {
		if !slices.Contains(rooms, folder.Name()) {
			t.Errorf("no room is named %s", folder.Name())
		}
	}
	if len(rooms) != len(folders) || functions == 0 {
		t.Errorf("rooms %v and %d functions; the folders are %v", rooms, functions, folders)
	}
}

// declarations returns the functions of the package in the folder, as Function or Type.Method.
func declarations(t *testing.T, folder string) []string {
	t.Helper()
	packages, err := goparser.ParseDir(token.NewFileSet(), folder, nil, 0) //nolint:staticcheck // No build tags.
	must(t, err)
	var names []string
	for _, p := range packages {
		goast.Inspect(p, func(n goast.Node) bool {
			if function, ok := n.(*goast.FuncDecl); ok {
				names = append(names, receiver(function)+function.Name.Name)
			}
			return true
		})
	}
	return names
}

// receiver returns the name of the type of a method with a period, or nothing.
func receiver(function *goast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	name := ""
	goast.Inspect(function.Recv.List[0].Type, func(n goast.Node) bool {
		if identifier, ok := n.(*goast.Ident); ok && name == "" {
			name = identifier.Name + "."
		}
		return name == ""
	})
	return name
}
