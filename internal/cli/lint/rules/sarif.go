// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// WriteSARIF writes findings in the Static Analysis Results Interchange Format 2.1.0, which code hosts show
// next to the lines of a change. The suppressed findings are those of ignored rules; nil means that no
// rule is ignored. The version is that of seamark.
func WriteSARIF(w io.Writer, version string, findings, suppressed []Finding) error {
	index, rules := map[string]int{}, []any{}
	for i, r := range All() {
		index[r.Name] = i
		rules = append(rules, map[string]any{
			"id": r.Name, "shortDescription": map[string]any{"text": r.Summary},
			"defaultConfiguration": map[string]any{"level": r.Severity.level()},
		})
	}
	results := []any{}
	add := func(f Finding, suppressions []any) {
		result := map[string]any{
			"ruleId": f.Rule, "ruleIndex": index[f.Rule], "level": f.Severity.level(), "message": map[string]any{"text": f.text()},
			"locations": []any{f.location()},
		}
		// All results have suppressions, or none: an empty list means that the result is not suppressed.
		if suppressed != nil {
			result["suppressions"] = suppressions
		}
		results = append(results, result)
	}
	for _, f := range findings {
		add(f, []any{})
	}
	for _, f := range suppressed {
		// No comment in the file suppresses the result.
		add(f, []any{map[string]any{"kind": "external", "justification": "--ignore " + f.Rule}})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{
			"tool": map[string]any{"driver": map[string]any{
				"name": "seamark lint", "version": version, "informationUri": "https://github.com/seamark-dev/seamark", "rules": rules,
			}},
			"results": results, "columnKind": "unicodeCodePoints",
		}},
	})
	if err != nil {
		return fmt.Errorf("write SARIF: %w", err)
	}
	return nil
}

// level returns the severity as SARIF names it.
func (s Severity) level() string {
	if s == Info {
		return "note"
	}
	return string(s)
}

// text returns the field, the message and the fix: most programs show nothing else.
func (f Finding) text() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Fix != "" {
		text += ". Fix: " + f.Fix
	}
	return text
}

// location returns the line in the file, and the object and the field.
func (f Finding) location() map[string]any {
	physical := map[string]any{"artifactLocation": map[string]any{"uri": uri(f.File)}}
	if f.Line > 0 {
		physical["region"] = map[string]any{"startLine": f.Line, "startColumn": f.Column}
	}
	location := map[string]any{"physicalLocation": physical}
	if name := strings.TrimSpace(f.Object + " " + f.Field); name != "" {
		location["logicalLocations"] = []any{map[string]any{"fullyQualifiedName": name}}
	}
	return location
}

// uri returns a relative reference for a relative path, and a file URI for an absolute one.
func uri(file string) string {
	path := filepath.ToSlash(file)
	if filepath.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(path, "/")}).String()
	}
	return (&url.URL{Path: strings.TrimPrefix(path, "./")}).String()
}
