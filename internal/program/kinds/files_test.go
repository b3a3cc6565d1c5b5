// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/test/expect"
)

// maxFiles is the maximum number of files that name a kind and do not belong to it.
const maxFiles = 5

// otherUses returns the files that use a kind for something else than its own objects, by what for.
func otherUses() map[string]map[string][]string {
	return map[string]map[string][]string{
		"ImagePullJob": {
			"sets pull images with them before an update": {
				"internal/program/config/workloads.go", "internal/workloads/apply/apply.go", "internal/workloads/planning/kind.go",
				"internal/workloads/planning/workload.go", "internal/workloads/reconciler/events.go", "internal/workloads/reconciler/observe.go",
				"internal/workloads/step/predownload.go",
			},
			"their pods are not marked": {"internal/cli/explain/explanation/pod.go"},
		},
		"SidecarSet": {
			"the injectors are a program of their own": {
				"cmd/seamark-workloads/injector.go", "internal/cli/check/checks/permissions.go", "hack/metricsdocs/main.go",
			},
			"pods and the page show what they have added": {
				"internal/cli/explain/read.go", "internal/cli/explain/explanation/explain.go", "internal/cli/ui/objects/objects.go",
			},
			"their revisions are copied": {"internal/cli/migrate/revisions.go", "internal/cli/migrate/migration/revisions.go"},
			"they select namespaces":     {"internal/workloads/grants/selection.go"},
		},
	}
}

// ownNames returns the names of the folders and files that belong to a kind.
func ownNames(kind string) []string {
	if names, ok := map[string][]string{
		"SidecarSet": {"sidecar", "sidecarset", "sidecarsets"}, "AdvancedCronJob": {"cronjob"}, "ImagePullJob": {"imagepull"},
	}[kind]; ok {
		return names
	}
	return []string{strings.ToLower(kind)}
}

// The next kind is a row, a constructor, its own folders, and what the commands show of it. Files of one kind may name another.
func TestFilesThatNameAKind(t *testing.T) {
	named := map[string][]string{}
	var owned []string
	for _, kind := range kinds.Table() {
		owned = append(owned, ownNames(kind.Kind)...)
	}
	root := os.DirFS(filepath.Join("..", "..", ".."))
	for _, folder := range []string{"cmd", "internal", "hack"} {
		err := fs.WalkDir(root, folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, content, 0)
			if err != nil {
				return err
			}
			for _, kind := range kinds.Table() {
				parts := strings.Split(strings.TrimSuffix(path, ".go"), "/")
				belongs := func(name string) bool { return slices.Contains(parts, name) }
				if !slices.ContainsFunc(owned, belongs) && names(parsed, kind) {
					named[kind.Kind] = append(named[kind.Kind], path)
				}
			}
			return nil
		})
		expect.NoError(t, err)
	}
	for _, kind := range kinds.Table() {
		for reason, files := range otherUses()[kind.Kind] {
			for _, file := range files {
				i := slices.Index(named[kind.Kind], file)
				if i < 0 {
					t.Errorf("%s does not name %s: %s", file, kind.Kind, reason)
					continue
				}
				named[kind.Kind] = slices.Delete(named[kind.Kind], i, i+1)
			}
		}
		if files := named[kind.Kind]; len(files) > maxFiles || len(files) < 2 {
			t.Errorf("%d files name %s, want 2 to %d:\n  %s", len(files), kind.Kind, maxFiles, strings.Join(files, "\n  "))
		}
	}
}

// names reports whether the code of a file, without comments, names the kind: by its types, by a field of its name, as a text,
// or by importing a package of its own. Kubernetes has some of the kinds, too: of these, only the types of the group count.
func names(file *ast.File, kind kinds.Kind) bool {
	builtIn := kind.Kind == "StatefulSet" || kind.Kind == "DaemonSet"
	types := []string{kind.Kind, kind.Kind + "s", kind.Kind + "List", kind.Kind + "Spec", kind.Kind + "Status"}
	found := false
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			path, _ := strconv.Unquote(n.Path.Value)
			parts := strings.Split(strings.TrimPrefix(path, "github.com/seamark-dev/seamark/"), "/")
			found = found || strings.HasPrefix(path, "github.com/seamark-dev/") &&
				slices.ContainsFunc(ownNames(kind.Kind), func(name string) bool { return slices.Contains(parts, name) })
			return false
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			found = found || ok && slices.Contains(types, n.Sel.Name) && (of.Name == "v1alpha1" || strings.HasSuffix(of.Name, "v1beta1"))
		case *ast.Ident:
			found = found || !builtIn && slices.Contains(types, n.Name)
		case *ast.BasicLit:
			text, _ := strconv.Unquote(n.Value)
			found = found || !builtIn && (text == kind.Kind || text == kind.Resource) || text == kind.Definition()
		}
		return !found
	})
	return found
}
