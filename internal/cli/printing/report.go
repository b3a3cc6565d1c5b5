// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Report is --output of a command that prints a text of its own: Text, json, yaml, or another format of
// the command.
type Report string

// Text is the default format of a Report.
const Text Report = "text"

func reportFormats(others []string) []string {
	return append([]string{string(Text), "json", "yaml"}, others...)
}

// OneOf returns the allowed values of a flag for a message, such as "text, json or yaml".
func OneOf(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// AddTo defines the flag in the command, and completes it. The others are formats that only this command
// has.
func (r *Report) AddTo(command *cobra.Command, others ...string) {
	formats := reportFormats(others)
	command.Flags().StringVarP((*string)(r), "output", "o", string(Text), "output format: "+OneOf(formats))
	// It fails only if the flag does not exist or has a completion already.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// Validate returns an error if the format is not one of those that AddTo allows.
func (r Report) Validate(others ...string) error {
	if formats := reportFormats(others); !slices.Contains(formats, string(r)) {
		return fmt.Errorf("--output: %q is invalid: must be %s", r, OneOf(formats))
	}
	return nil
}

// Print prints the value as JSON or YAML, or calls text if the format is another one.
func (r Report) Print(out io.Writer, value any, text func(io.Writer) error) error {
	var err error
	switch r {
	case "json":
		encoder := json.NewEncoder(Raw(out))
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(value)
	case "yaml":
		var content []byte
		if content, err = YAML(value); err == nil {
			_, err = Raw(out).Write(content)
		}
	default:
		return text(out)
	}
	if err != nil {
		return fmt.Errorf("print as %s: %w", r, err)
	}
	return nil
}

// YAML returns the value as YAML, with the names of its JSON form.
func YAML(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	// JSON permits control characters in strings that YAML does not permit.
	var escaped strings.Builder
	for _, r := range string(encoded) {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	content, err := yaml.JSONToYAML([]byte(escaped.String()))
	if err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	return content, nil
}
