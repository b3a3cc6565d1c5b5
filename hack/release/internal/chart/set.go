// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// setting is a new value for an existing scalar of a YAML document.
type setting struct {
	path  []string
	value string
}

// setAll changes scalars of a YAML document and keeps everything else, including comments, byte for byte.
func setAll(document []byte, settings []setting) ([]byte, error) {
	for _, s := range settings {
		changed, err := set(document, s)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", strings.Join(s.path, "."), err)
		}
		document = changed
	}
	return document, nil
}

func set(document []byte, s setting) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	node := &root
	if node.Kind == yaml.DocumentNode {
		node = node.Content[0]
	}
	for _, key := range s.path {
		if node = child(node, key); node == nil {
			return nil, fmt.Errorf("there is no field %s", key)
		}
	}
	lines := strings.SplitAfter(string(document), "\n")
	line := strings.TrimRight(lines[node.Line-1][node.Column-1:], "\n")
	// The line must contain the value and nothing else, so that no comment or other value is lost.
	var alone string
	if err := yaml.Unmarshal([]byte(line), &alone); err != nil || node.Kind != yaml.ScalarNode || alone != node.Value || strings.Contains(line, " #") {
		return nil, fmt.Errorf("line %d is not a plain value: %s", node.Line, line)
	}
	encoded, err := yaml.Marshal(s.value)
	if err != nil {
		return nil, err
	}
	lines[node.Line-1] = lines[node.Line-1][:node.Column-1] + string(encoded)
	return []byte(strings.Join(lines, "")), nil
}

// child returns the value of a key, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}
