// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// notImperative matches formats of errors that do not begin with the imperative.
var notImperative = regexp.MustCompile(`^(?i:failed to|can(?:not|'t)|could not|unable to) [^"]*%w` +
	`|^(?:apply|build|connect|creat|decod|delet|find|gett|list|load|look|mak|open|pars|patch|read|remov|runn|sett|start|updat|wait|watch|writ)ing\b[^"]*%w`)

// checkGo checks the string literals of a Go file.
func checkGo(path string, rules []rule) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.CallExpr:
			if text, is := errorFormat(n); is {
				imperative := rule{notImperative, `the imperative ("list pods: %w")`}
				out = append(out, imperative.in(position(files, n), text)...)
			}
		case *ast.BasicLit:
			text, is := literal(n)
			if !is || !strings.Contains(text, " ") {
				return true
			}
			for _, r := range rules {
				out = append(out, r.in(position(files, n), text)...)
			}
		}
		return true
	})
	return out, nil
}

// errorFormat returns the format of a call of fmt.Errorf.
func errorFormat(call *ast.CallExpr) (string, bool) {
	function, is := call.Fun.(*ast.SelectorExpr)
	if !is || function.Sel.Name != "Errorf" || len(call.Args) == 0 {
		return "", false
	}
	if pkg, is := function.X.(*ast.Ident); !is || pkg.Name != "fmt" {
		return "", false
	}
	return literal(call.Args[0])
}

func literal(n ast.Node) (string, bool) {
	lit, is := n.(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func position(files *token.FileSet, n ast.Node) string {
	p := files.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
