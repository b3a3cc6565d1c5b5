// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// faults returns the values of a JSON document that do not fit the Go type: the decoder says so of each value that is
// neither a list nor an object, and of those of types that decode themselves. Numbers of the document are
// json.Numbers.
func faults(document any, of reflect.Type) []Fault {
	w := walker{}
	w.value(document, of, path{})
	return w.found
}

// path is where a value is.
type path struct {
	text string
	// root are the first two fields, of which there are depth.
	root  [2]string
	depth int
}

func (p path) field(name string) path {
	if p.text != "" {
		p.text += "."
	}
	p.text += name
	return p.below(name)
}

func (p path) key(name string) path {
	p.text += fmt.Sprintf("[%q]", cut(name, maxKey))
	return p.below(name)
}

func (p path) index(i int) path {
	p.text += fmt.Sprintf("[%d]", i)
	return p.below("")
}

func (p path) below(name string) path {
	if p.depth < len(p.root) {
		p.root[p.depth] = name
	}
	p.depth++
	return p
}

type walker struct{ found []Fault }

func (w *walker) fault(value any, at path, want string) {
	w.found = append(w.found, Fault{Path: cut(at.text, maxPath), Value: quote(value), Want: want, root: at.root})
}

func (w *walker) value(value any, of reflect.Type, at path) {
	if value == nil {
		return // It fits every type.
	}
	for of.Kind() == reflect.Pointer && !decodesItself(of) {
		of = of.Elem()
	}
	if decodesItself(of) {
		w.leaf(value, of, at)
		return
	}
	switch of.Kind() {
	case reflect.Interface:
	case reflect.Struct:
		w.object(value, at, func(object map[string]any) { w.fields(object, of, at) })
	case reflect.Map:
		w.object(value, at, func(object map[string]any) {
			for _, key := range slices.Sorted(maps.Keys(object)) {
				w.value(object[key], of.Elem(), at.key(key))
			}
		})
	case reflect.Slice, reflect.Array:
		w.list(value, of, at)
	default:
		w.leaf(value, of, at)
	}
}

func (w *walker) object(value any, at path, each func(map[string]any)) {
	if object, ok := value.(map[string]any); ok {
		each(object)
	} else {
		w.fault(value, at, "an object")
	}
}

func (w *walker) list(value any, of reflect.Type, at path) {
	if of.Elem().Kind() == reflect.Uint8 {
		w.leaf(value, of, at)
		return
	}
	list, ok := value.([]any)
	if !ok {
		w.fault(value, at, "a list")
	}
	for i, each := range list {
		w.value(each, of.Elem(), at.index(i))
	}
}

// fields looks at the fields of a struct. The decoder ignores those that the type does not have.
func (w *walker) fields(object map[string]any, of reflect.Type, at path) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && field.Anonymous && (options == "inline" || options == "" || options == "omitempty"):
			if inner := field.Type; inner.Kind() == reflect.Struct {
				w.fields(object, inner, at)
			} else if inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct {
				w.fields(object, inner.Elem(), at)
			}
		case !field.IsExported():
		default:
			if name == "" {
				name = field.Name
			}
			if value, found := object[name]; found {
				w.value(value, field.Type, at.field(name))
			}
		}
	}
}

// leaf asks the decoder.
func (w *walker) leaf(value any, of reflect.Type, at path) {
	// What was decoded encodes.
	encoded, _ := json.Marshal(value)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, reflect.New(of).Interface()); err != nil {
		w.fault(value, at, wanted(of))
	}
}

func decodesItself(of reflect.Type) bool {
	decoder := reflect.TypeFor[json.Unmarshaler]()
	return of.Implements(decoder) || reflect.PointerTo(of).Implements(decoder)
}

// wanted describes the values of a type.
func wanted(of reflect.Type) string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Name() {
	case "Quantity":
		return `a quantity, such as 500m or "1Gi"`
	case "IntOrString":
		return "an integer or a string"
	case "Time", "MicroTime":
		return `a time, such as "2006-01-02T15:04:05Z"`
	case "Duration":
		return `a duration, such as "1m30s"`
	}
	switch of.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", of.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer of %d bits that is not negative", of.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a string in base64"
	default:
		return "a " + of.Name()
	}
}
