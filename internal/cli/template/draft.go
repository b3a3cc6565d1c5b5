// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template writes the first version of a PodProbeMarker: YAML in which comments explain each
// field and its default.
package template

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

//go:embed marker.yaml
var manifest string

// YAML returns the manifest of the marker. It has the fields that `seamark init` sets: each probe has a
// handler, all times and all thresholds.
func YAML(marker *v1alpha1.PodProbeMarker) ([]byte, error) {
	parsed, err := template.New("marker").Funcs(template.FuncMap{"yaml": inline, "indent": indented, "flow": flow}).Parse(manifest)
	if err != nil {
		return nil, fmt.Errorf("read template of a marker: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, marker); err != nil {
		return nil, fmt.Errorf("write marker: %w", err)
	}
	return out.Bytes(), nil
}

// inline returns a text or a port on one line, in quotes if the API server would read something else
// without them: it reads YAML 1.1, where yes is a boolean and 12:30 a number.
func inline(value any) (string, error) {
	content, err := yaml.Marshal(value)
	if text := strings.TrimSuffix(string(content), "\n"); err != nil || !strings.ContainsAny(text, "\n,[]{}") {
		return text, err //nolint:wrapcheck // the template names the value
	}
	// A JSON string is YAML.
	content, err = json.Marshal(value)
	return string(content), err //nolint:wrapcheck // the template names the value
}

// indented returns a mapping, indented by blanks.
func indented(blanks int, value any) (string, error) {
	content, err := yaml.Marshal(value)
	indent := strings.Repeat(" ", blanks)
	lines := strings.ReplaceAll(strings.TrimSuffix(string(content), "\n"), "\n", "\n"+indent)
	return indent + lines, err //nolint:wrapcheck // the template names the value
}

// flow returns a command as a list on one line.
func flow(command []string) (string, error) {
	words := make([]string, len(command))
	for i, word := range command {
		var err error
		if words[i], err = inline(word); err != nil {
			return "", err
		}
	}
	return "[" + strings.Join(words, ", ") + "]", nil
}
