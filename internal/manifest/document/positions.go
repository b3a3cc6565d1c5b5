// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// maxMerges bounds how many mappings of merge keys (<<) are searched for one path. They may form a
// circle.
const maxMerges = 100

const mergeTag = "!!merge"

// Positions finds the fields of a document. It is not safe for concurrent use.
type Positions struct {
	before int
	// root returns the value of the document. Most documents have no finding, and are not parsed for it.
	root func() *yaml.Node
	// keys are the keys of the mappings that were searched.
	keys map[*yaml.Node]keys
}

// keys are the keys of a mapping, by their texts.
type keys struct {
	// first has the places in the content of the mapping.
	first   map[string]int
	longest int
	// merges are the values of the merge keys.
	merges []*yaml.Node
}

// Positions returns the positions of the document's fields. If its YAML cannot be parsed, all of
// them are the start of the document.
func (d Document) Positions() *Positions {
	root := func() *yaml.Node {
		var node yaml.Node
		if err := yaml.Unmarshal(d.content, &node); err != nil || len(node.Content) == 0 {
			return nil
		}
		return node.Content[0]
	}
	return &Positions{before: d.before, root: sync.OnceValue(root), keys: map[*yaml.Node]keys{}}
}

// Of returns the line and column of a field in the manifest, both from 1. The column counts
// characters. The path has the form of field errors, such as spec.probes[0].name or
// metadata.labels[game.io/idle]. The result is the position of the field's key, of the item of a
// list, or, if the field is missing, that of the nearest field around it.
func (p *Positions) Of(path string) (line, column int) {
	root := p.root()
	if root == nil {
		return p.before + 1, 1
	}
	at, node, merges := root, root, maxMerges
	for path != "" && node != nil {
		path = strings.TrimPrefix(path, ".")
		if node.Kind == yaml.AliasNode {
			node = node.Alias
			continue
		}
		key, value, rest := p.step(node, path, &merges)
		if value == nil {
			break
		}
		at, node, path = key, value, rest
	}
	return p.before + at.Line, at.Column
}

// step returns the key and the value of the first field of the path, and the rest of the path. They
// are nil if the node has no such field.
func (p *Positions) step(node *yaml.Node, path string, merges *int) (key, value *yaml.Node, rest string) {
	switch node.Kind {
	case yaml.SequenceNode:
		index, after, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		n, err := strconv.Atoi(index)
		if !found || err != nil || n < 0 || n >= len(node.Content) {
			return nil, nil, path
		}
		return node.Content[n], node.Content[n], after
	case yaml.MappingNode:
		return p.field(node, path, merges)
	default:
		return nil, nil, path
	}
}

// field finds the longest key that the path starts with: keys of labels may contain dots.
func (p *Positions) field(node *yaml.Node, path string, merges *int) (key, value *yaml.Node, rest string) {
	known := p.keysOf(node)
	if i, rest, found := known.longestIn(path); found {
		return node.Content[i], node.Content[i+1], rest
	}
	for _, merge := range known.merges {
		for _, merged := range mergedInto(merge) {
			if *merges == 0 {
				return nil, nil, path
			}
			*merges--
			if key, value, rest := p.field(merged, path, merges); key != nil {
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

// keysOf returns the keys of a mapping.
func (p *Positions) keysOf(node *yaml.Node) keys {
	found, known := p.keys[node]
	if known {
		return found
	}
	found = keys{first: make(map[string]int, len(node.Content)/2)}
	for i := 0; i+1 < len(node.Content); i += 2 {
		text := node.Content[i].Value
		if _, twice := found.first[text]; !twice {
			found.first[text] = i
		}
		found.longest = max(found.longest, len(text))
		if node.Content[i].Tag == mergeTag {
			found.merges = append(found.merges, node.Content[i+1])
		}
	}
	p.keys[node] = found
	return found
}

// longestIn returns the longest key that the path starts with, written as key or [key], and the rest of
// the path.
func (k keys) longestIn(path string) (at int, rest string, found bool) {
	inBrackets := strings.HasPrefix(path, "[")
	for end := min(len(path), k.longest+1); end > 0; end-- {
		if end == len(path) || path[end] == '.' || path[end] == '[' {
			if at, found = k.first[path[:end]]; found {
				return at, path[end:], true
			}
		}
		if inBrackets && end < len(path) && path[end] == ']' {
			if at, found = k.first[path[1:end]]; found {
				return at, path[end+1:], true
			}
		}
	}
	return 0, path, false
}
