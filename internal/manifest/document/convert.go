// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// toJSON converts a document to JSON. The lines in errors are those of the document.
func toJSON(content []byte) ([]byte, error) {
	if err := checkText(content); err != nil {
		return nil, err
	}
	encoded, err := yaml.YAMLToJSONStrict(content)
	if err == nil {
		return encoded, nil
	}
	if problem := jsonProblem(content); problem != nil {
		return nil, problem
	}
	var root yamlv3.Node
	if yamlv3.Unmarshal(content, &root) != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	// The strict parser also refuses keys that override those of a merge key, which are valid.
	merges := maxMerges
	if problems := duplicates(nil, &root, &merges); len(problems) > 0 {
		return nil, errors.New("invalid YAML: " + strings.Join(problems, "\n"))
	}
	if encoded, err = yaml.YAMLToJSON(content); err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	return encoded, nil
}

// checkText returns an error for the first byte that is not UTF-8, and for the first control character,
// because the parser does not say where they are. It leaves UTF-16 to the parser.
func checkText(content []byte) error {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		return nil
	}
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		line := func() int { return bytes.Count(content[:i], []byte("\n")) + 1 }
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("invalid text: line %d: the byte 0x%02x is not UTF-8: save the file as UTF-8", line(), content[i])
		case unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r):
			return fmt.Errorf("invalid text: line %d: the control character %U is not allowed: write it as an escape sequence in double quotes", line(), r)
		}
		i += size
	}
	return nil
}

// jsonProblem returns why a document that was meant as JSON is not JSON. Otherwise it returns nil.
func jsonProblem(content []byte) error {
	rest, isMapping := bytes.CutPrefix(bytes.TrimSpace(content), []byte("{"))
	if !isMapping || !bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"`)) {
		return nil
	}
	var value any
	var syntax *json.SyntaxError
	if !errors.As(json.Unmarshal(content, &value), &syntax) {
		return nil
	}
	line := bytes.Count(content[:min(syntax.Offset, int64(len(content)))], []byte("\n")) + 1
	return fmt.Errorf("invalid JSON: line %d: %w", line, syntax)
}

// maxProblems is the number of keys that an error about a document names.
const maxProblems = 20

// duplicates adds a text for each key that occurs twice in a mapping, and for each merge key after a key
// that it would replace: parsers differ about these.
func duplicates(problems []string, node *yamlv3.Node, merges *int) []string {
	seen := map[string]bool{}
	for i, child := range node.Content {
		if len(problems) >= maxProblems {
			break
		}
		problems = duplicates(problems, child, merges)
		if node.Kind != yamlv3.MappingNode || i%2 == 1 || child.Kind != yamlv3.ScalarNode {
			continue
		}
		if child.Tag == mergeTag {
			for _, key := range mergedKeys(node.Content[i+1], merges) {
				if seen[key] {
					problems = append(
						problems, fmt.Sprintf("line %d: the merge key replaces %q, which is set above: move the merge key to the top", child.Line, key),
					)
				}
			}
			continue
		}
		if seen[child.Value] {
			problems = append(problems, fmt.Sprintf("line %d: key %q already set in map", child.Line, child.Value))
		}
		seen[child.Value] = true
	}
	return problems
}

// mergedKeys returns the keys of the mappings of a merge key, and of those that they merge.
func mergedKeys(value *yamlv3.Node, merges *int) []string {
	var keys []string
	for _, mapping := range mergedInto(value) {
		if *merges == 0 {
			break
		}
		*merges--
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if mapping.Content[i].Tag == mergeTag {
				keys = append(keys, mergedKeys(mapping.Content[i+1], merges)...)
				continue
			}
			keys = append(keys, mapping.Content[i].Value)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
