// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// YAML returns the value as YAML, with the names of its JSON form.
func YAML(value any) ([]byte, error) {
	encoded, err := jsonForYAML(value)
	if err != nil {
		return nil, err
	}
	content, err := yaml.JSONToYAML(encoded)
	if err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	return content, nil
}

// jsonForYAML returns the value as JSON that is also YAML: JSON permits control characters in strings
// that YAML does not permit.
func jsonForYAML(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	var out strings.Builder
	for _, r := range string(encoded) {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return []byte(out.String()), nil
}

// yamlPrinter prints objects as the printer of kubectl does, also those with control characters.
type yamlPrinter struct{ printers.ResourcePrinter }

// PrintObj prints the object.
func (p yamlPrinter) PrintObj(object runtime.Object, out io.Writer) error {
	encoded, err := jsonForYAML(object)
	if err != nil {
		return err
	}
	return p.ResourcePrinter.PrintObj(&runtime.Unknown{Raw: encoded}, out) //nolint:wrapcheck // the caller wraps it
}
