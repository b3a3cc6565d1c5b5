// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindings(t *testing.T) {
	rules, err := readRules(filepath.Join("../..", phrases))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		name, content string
		want          int
	}{
		"plain words":         {"a.go", "package a\n\nvar a = \"one per node\"\n", 0},
		"phrase in a literal": {"a.go", "package a\n\nvar a = \"one a node\"\n", 1},
		"phrase in a comment": {"a.go", "package a\n\n// one a node\n", 0},
		"import path":         {"a.go", "package a\n\nimport _ \"anew\"\n", 0},
		"imperative error":    {"a.go", "package a\n\nvar a = fmt.Errorf(\"list pods: %w\", err)\n", 0},
		"gerund in an error":  {"a.go", "package a\n\nvar a = fmt.Errorf(\"listing pods: %w\", err)\n", 1},
		"failed to":           {"a.go", "package a\n\nvar a = fmt.Errorf(\"failed to list pods: %w\", err)\n", 1},
		"manifest":            {"a.yaml", "# The plan is made anew.\na: b\n", 1},
		"Markdown text":       {"a.md", "Made anew.\n", 0},
		"Markdown code block": {"a.md", "Text\n\n```console\n$ echo made anew\n```\n\nanew\n", 1},
		"dashboard":           {"a.json", "{\"legendFormat\": \"{{name}} retries a second\"}\n", 1},
		"unknown extension":   {"a.bin", "anew\n", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.name)
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			if check := checkerOf(path); check != nil {
				if got, err = check(path, rules); err != nil {
					t.Fatal(err)
				}
			}
			if len(got) != test.want {
				t.Errorf("%d findings, want %d: %v", len(got), test.want, got)
			}
		})
	}
}
