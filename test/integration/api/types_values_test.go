// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// node is a value in an object: a field, an item of a list or a value of a map.
type node struct {
	path   string
	keys   []any
	goType reflect.Type
}

func (n node) below(key any, t reflect.Type) node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := n.path + "[0]"
	if name, ok := key.(string); ok {
		path = strings.TrimPrefix(n.path+"."+name, ".")
	}
	return node{path, append(n.keys[:len(n.keys):len(n.keys)], key), t}
}

// in returns the value of the node in the object.
func (n node) in(object any) (any, bool) {
	for _, key := range n.keys {
		switch value := object.(type) {
		case map[string]any:
			below, found := value[key.(string)]
			if !found {
				return nil, false
			}
			object = below
		case []any:
			object = value[0]
		default:
			return nil, false
		}
	}
	return object, true
}

// wrongValues returns values of each type of JSON, and those which decoders of numbers and texts refuse.
func wrongValues() []any {
	return []any{
		nil, true, "a", "2024-02-30T00:00:00Z", "2024-01-01t00:00:00Z", "1GB", int64(7), int64(1) << 40, 0.5,
		map[string]any{}, map[string]any{"a": int64(7)}, []any{}, []any{int64(7)}, []any{"a"},
	}
}

// wrongValueOf returns one of the values that the decoder of the type refuses.
func wrongValueOf(t reflect.Type, turn int) (any, bool) {
	values := wrongValues()
	for i := range values {
		if value := values[(turn+i)%len(values)]; decode(t, value) != nil {
			return value, true
		}
	}
	return nil, false
}

// decode decodes the value as the programs of Seamark do.
func decode(t reflect.Type, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface())
}

// builder builds an object of which all values at a depth are replaced.
type builder struct {
	replace func(node) (any, bool)
	nodes   []node
}

// build returns an object of the kind with every field, down to a depth, at which the values are replaced, and the nodes
// that have been replaced.
func (k typed) build(depth int, replace func(node) (any, bool)) (map[string]any, []node) {
	b := &builder{replace: replace}
	object := b.fields(node{}, reflect.TypeOf(k.object), depth)
	object["apiVersion"], object["kind"], object["metadata"] = k.version, k.kind, map[string]any{"name": "a", "namespace": "default"}
	return object, b.nodes
}

func (b *builder) value(n node, depth int) any {
	if depth == 0 {
		if value, ok := b.replace(n); ok {
			b.nodes = append(b.nodes, n)
			return value
		}
	}
	switch n.goType {
	case reflect.TypeFor[resource.Quantity]():
		return 0.5
	case reflect.TypeFor[intstr.IntOrString]():
		return int64(1)
	case reflect.TypeFor[metav1.Time]():
		return "2024-01-01T00:00:00Z"
	case reflect.TypeFor[[]corev1.EphemeralContainer]():
		return []any{} // No template may have any.
	case reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"f:a": map[string]any{}}
	}
	switch n.goType.Kind() {
	case reflect.Bool:
		return true
	case reflect.Int32, reflect.Int64:
		return int64(1)
	case reflect.Slice:
		return []any{b.value(n.below(0, n.goType.Elem()), depth-1)}
	case reflect.Map:
		return map[string]any{"a": b.value(n.below("a", n.goType.Elem()), depth-1)}
	case reflect.Struct:
		return b.fields(n, n.goType, depth)
	default:
		return "a"
	}
}

func (b *builder) fields(n node, t reflect.Type, depth int) map[string]any {
	object := map[string]any{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta]():
		case name == "" && f.Anonymous:
			for key, value := range b.fields(n, f.Type, depth) {
				object[key] = value
			}
		case name != "" && name != "-" && n.path+name != "metadata" && object[name] == nil:
			object[name] = b.value(n.below(name, f.Type), depth-1)
		}
	}
	return object
}

// fill adds to a value what is in all, is in an open part, and that the value lacks.
func (k typed) fill(value, all any, path string) {
	switch value := value.(type) {
	case map[string]any:
		fields, _ := all.(map[string]any)
		for name, below := range fields {
			at := path + "." + name
			if got, exists := value[name]; exists {
				k.fill(got, below, at)
			} else if k.isFree(at) {
				value[name] = below
			}
		}
	case []any:
		for i := range value {
			k.fill(value[i], all.([]any)[0], path+"[0]")
		}
	}
}
