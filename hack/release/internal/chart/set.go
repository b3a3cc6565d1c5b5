// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// set changes a scalar of a YAML document, whose path has dots, and keeps everything else, including comments, byte for
// byte. The old value must be the rest of its line.
func set(document []byte, path, value string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	node := root.Content[0]
	for key := range strings.SplitSeq(path, ".") {
		if node = child(node, key); node == nil {
			return nil, fmt.Errorf("there is no field %s", path)
		}
	}
	lines := strings.SplitAfter(string(document), "\n")
	line := lines[node.Line-1]
	if old := strings.Trim(line[node.Column-1:], "\"'\n"); node.Kind != yaml.ScalarNode || old != node.Value {
		return nil, fmt.Errorf("the field %s is not a plain value: %s", path, old)
	}
	lines[node.Line-1] = line[:node.Column-1] + value + "\n"
	return []byte(strings.Join(lines, "")), nil
}

// child returns the value of a key of a mapping, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}
