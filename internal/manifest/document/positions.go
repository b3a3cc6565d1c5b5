// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxMerges bounds how many mappings of merge keys (<<) are searched for one path. They may form a
// circle.
const maxMerges = 100

const mergeTag = "!!merge"

// Positions finds the fields of a document.
type Positions struct {
	root   *yaml.Node
	before int
}

// Positions returns the positions of the document's fields. If its YAML cannot be parsed, all of
// them are the start of the document.
func (d Document) Positions() Positions {
	var node yaml.Node
	if err := yaml.Unmarshal(d.content, &node); err != nil || len(node.Content) == 0 {
		return Positions{before: d.before}
	}
	return Positions{root: node.Content[0], before: d.before}
}

// Of returns the line and column of a field in the manifest, both from 1. The column counts
// characters. The path has the form of field errors, such as spec.probes[0].name or
// metadata.labels[game.io/idle]. The result is the position of the field's key, of the item of a
// list, or, if the field is missing, that of the nearest field around it.
func (p Positions) Of(path string) (line, column int) {
	if p.root == nil {
		return p.before + 1, 1
	}
	at, node, merges := p.root, p.root, maxMerges
	for path != "" && node != nil {
		path = strings.TrimPrefix(path, ".")
		if node.Kind == yaml.AliasNode {
			node = node.Alias
			continue
		}
		key, value, rest := step(node, path, &merges)
		if value == nil {
			break
		}
		at, node, path = key, value, rest
	}
	return p.before + at.Line, at.Column
}

// step returns the key and the value of the first field of the path, and the rest of the path. They
// are nil if the node has no such field.
func step(node *yaml.Node, path string, merges *int) (key, value *yaml.Node, rest string) {
	switch node.Kind {
	case yaml.SequenceNode:
		index, after, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		n, err := strconv.Atoi(index)
		if !found || err != nil || n < 0 || n >= len(node.Content) {
			return nil, nil, path
		}
		return node.Content[n], node.Content[n], after
	case yaml.MappingNode:
		return field(node, path, merges)
	default:
		return nil, nil, path
	}
}

// field finds the longest key that the path starts with: keys of labels may contain dots.
func field(node *yaml.Node, path string, merges *int) (key, value *yaml.Node, rest string) {
	rest = path
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		if after, found := cutKey(path, k.Value); found && (key == nil || len(k.Value) > len(key.Value)) {
			key, value, rest = k, v, after
		}
	}
	if key != nil {
		return key, value, rest
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != mergeTag {
			continue
		}
		for _, merged := range mergedInto(node.Content[i+1]) {
			if *merges == 0 {
				return nil, nil, path
			}
			*merges--
			if key, value, rest := field(merged, path, merges); key != nil {
				return key, value, rest
			}
		}
	}
	return nil, nil, path
}

// mergedInto returns the mappings that a merge key refers to.
func mergedInto(value *yaml.Node) []*yaml.Node {
	nodes := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		nodes = value.Content
	}
	var mappings []*yaml.Node
	for _, node := range nodes {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		if node != nil && node.Kind == yaml.MappingNode {
			mappings = append(mappings, node)
		}
	}
	return mappings
}

// cutKey returns the rest of the path after the key, written as key or [key].
func cutKey(path, key string) (rest string, found bool) {
	if rest, found = strings.CutPrefix(path, "["+key+"]"); found {
		return rest, true
	}
	rest, found = strings.CutPrefix(path, key)
	return rest, found && key != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
