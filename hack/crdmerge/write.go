// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// writer writes a CRD as YAML. A map with a name that occurs several times is written once, with an anchor, and then as
// an alias: the types of a pod template are 90 KB as JSON, contain those of a container three times, and occur in two
// versions of most CRDs. Generated maps without properties are written in one line.
type writer struct {
	names   map[uintptr]string
	uses    map[uintptr]int
	written map[uintptr]*yaml.Node
}

func identity(m map[string]any) uintptr { return reflect.ValueOf(m).Pointer() }

// write returns the YAML of the object. The names are those of generated maps, and may be empty.
func write(object map[string]any, names map[uintptr]string) ([]byte, error) {
	w := writer{names: names, uses: map[uintptr]int{}, written: map[uintptr]*yaml.Node{}}
	w.count(object)
	root, err := w.node(object)
	if err != nil {
		return nil, err
	}
	text := bytes.NewBufferString("---\n")
	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write CRD: %w", err)
	}
	return text.Bytes(), nil
}

func (w writer) count(value any) {
	switch value := value.(type) {
	case map[string]any:
		id := identity(value)
		if w.uses[id]++; w.uses[id] > 1 {
			return
		}
		for _, below := range value {
			w.count(below)
		}
	case []any:
		for _, below := range value {
			w.count(below)
		}
	}
}

func (w writer) node(value any) (*yaml.Node, error) {
	switch value := value.(type) {
	case map[string]any:
		return w.mapping(value)
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, below := range value {
			item, err := w.node(below)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	default:
		if number, ok := value.(float64); ok && number == math.Trunc(number) {
			value = int64(number)
		}
		scalar := &yaml.Node{}
		if err := scalar.Encode(value); err != nil {
			return nil, fmt.Errorf("write %v: %w", value, err)
		}
		return scalar, nil
	}
}

func (w writer) mapping(value map[string]any) (*yaml.Node, error) {
	id := identity(value)
	if written := w.written[id]; written != nil && written.Anchor != "" {
		return &yaml.Node{Kind: yaml.AliasNode, Value: written.Anchor, Alias: written}, nil
	}
	result := &yaml.Node{Kind: yaml.MappingNode}
	name, generated := w.names[id]
	switch {
	case generated && !hasProperties(value):
		result.Style = yaml.FlowStyle
	case name != "" && w.uses[id] > 1:
		result.Anchor = name
	}
	w.written[id] = result
	for _, key := range slices.Sorted(maps.Keys(value)) {
		below, err := w.node(value[key])
		if err != nil {
			return nil, err
		}
		result.Content = append(result.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, below)
	}
	return result, nil
}

// hasProperties reports whether there are properties in the map, or in a map below.
func hasProperties(value map[string]any) bool {
	if value["properties"] != nil {
		return true
	}
	for _, below := range value {
		if below, ok := below.(map[string]any); ok && hasProperties(below) {
			return true
		}
	}
	return false
}
