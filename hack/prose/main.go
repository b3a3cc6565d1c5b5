// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose checks the text that vale does not see: the string literals of Go files, the code
// blocks of Markdown files, and files without a markup that vale knows, such as the Makefile and
// the dashboard. It uses the phrases of vale's style and rules for the texts of errors, prints each
// finding and exits with 1 if there are any.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const phrases = "hack/vale/styles/Seamark/Phrases.yml"

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string) error {
	rules, err := readRules(filepath.Join(root, phrases))
	if err != nil {
		return err
	}
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(path) {
				return fs.SkipDir
			}
			return nil
		}
		check := checkerOf(path)
		if check == nil {
			return nil
		}
		findings, err := check(path, rules)
		for _, f := range findings {
			fmt.Println(f)
		}
		found += len(findings)
		return err
	})
	if err == nil && found > 0 {
		err = fmt.Errorf("%d phrases to reword", found)
	}
	return err
}

// skipped reports whether a folder has no text of this project.
func skipped(path string) bool {
	name := filepath.Base(path)
	return slices.Contains([]string{".git", ".cluster", "bin", "testdata", "crd"}, name) ||
		slices.Contains([]string{"hack/vale", "hack/prose"}, path)
}

// checkerOf returns the check for a file, or nil if it has no text to check.
func checkerOf(path string) func(string, []rule) ([]string, error) {
	name := filepath.Base(path)
	switch filepath.Ext(path) {
	case ".go":
		if strings.HasPrefix(name, "zz_generated") {
			return nil
		}
		return checkGo
	case ".yaml", ".yml", ".json", ".tpl", ".txt", ".sh":
		return checkLines
	case ".md":
		return checkFences
	}
	if slices.Contains([]string{"Makefile", "Dockerfile", "run"}, name) {
		return checkLines
	}
	return nil
}

// rule is a pattern and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

// in returns a finding for each match of the rule in the text.
func (r rule) in(at, text string) []string {
	var out []string
	for _, match := range r.pattern.FindAllString(text, -1) {
		out = append(out, fmt.Sprintf("%s: write %s instead of %q", at, r.instead, strings.TrimSpace(match)))
	}
	return out
}

func readRules(path string) ([]rule, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var style struct {
		Swap map[string]string `json:"swap"`
	}
	if err := yaml.Unmarshal(content, &style); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	if len(style.Swap) == 0 {
		return nil, errors.New(path + " has no phrases")
	}
	var out []rule
	for pattern, instead := range style.Swap {
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		out = append(out, rule{re, instead})
	}
	return out, nil
}

func checkLines(path string, rules []rule) ([]string, error) {
	return checkSelected(path, rules, func(string) bool { return true })
}

// checkFences checks the code blocks of a Markdown file.
func checkFences(path string, rules []rule) ([]string, error) {
	inside := false
	return checkSelected(path, rules, func(line string) bool {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
		}
		return inside
	})
}

// checkSelected checks the selected lines of a file.
func checkSelected(path string, rules []rule, selected func(line string) bool) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []string
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		if !selected(line) {
			continue
		}
		for _, r := range rules {
			out = append(out, r.in(fmt.Sprintf("%s:%d", path, n), line)...)
		}
	}
	return out, nil
}
