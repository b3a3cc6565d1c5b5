// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// maxPath bounds the work for one suggestion, in bytes. The paths of real fields are shorter.
	maxPath = 1000
	// maxPlaces is how many places a suggestion names. A name that more places have means nothing alone.
	maxPlaces = 3
	// maxDepth bounds how far below a field its names are searched: pods have no deeper fields.
	maxDepth = 7
)

// UnknownFieldIn returns the path in the error of a strict decoder for an unknown field. It is false for other errors.
func UnknownFieldIn(err error) (path string, is bool) {
	match := regexp.MustCompile(`^unknown field "(.*)"$`).FindStringSubmatch(err.Error())
	if match == nil {
		return "", false
	}
	return match[1], true
}

// Unknown returns the message for a field that an object of type t does not have, with advice.
func Unknown(object map[string]any, path string, t reflect.Type) string {
	value, _ := ValueAt(object, path)
	if advice := Advice(path, t, value); advice != "" {
		return UnknownField + ": " + advice
	}
	return UnknownField
}

// Advice returns what to do about an unknown field of an object of type t: to write the similar name that its parent has, or to
// move it to where the type has its name. value is that of the field, or nil if it is not known: a text belongs to no mapping. The
// result is empty if no name is similar, if more than three places have it, or if the path is longer than 1,000 bytes.
func Advice(path string, t reflect.Type, value any) string {
	if len(path) > maxPath {
		return ""
	}
	steps := strings.Split(path, ".")
	name := withoutIndex(steps[len(steps)-1])
	// parents are the fields around it, from the object down, by their paths.
	parents := []place{{"", t}}
	for _, step := range steps[:len(steps)-1] {
		last := parents[len(parents)-1]
		next, ok := fieldsOf(last.of)[withoutIndex(step)]
		if !ok {
			return ""
		}
		parents = append(parents, place{join(last.path, step), next})
	}
	// A misspelled name of the same level comes before the same name of another level.
	known := slices.Sorted(maps.Keys(fieldsOf(parents[len(parents)-1].of)))
	return cmp.Or(text.DidYouMean(text.Typo(name, known)), moved(parents, name, value), text.DidYouMean(text.Closest(name, known)))
}

// moved returns where the field belongs that is at the end of the parents, or nothing if it is not known.
func moved(parents []place, name string, value any) string {
	// A wrong indentation is more likely than a level that is missing.
	for _, parent := range slices.Backward(parents) {
		if t, has := fieldsOf(parent.of)[name]; has && holds(t, value) {
			return belongs([]string{parent.path})
		}
	}
	for _, parent := range slices.Backward(parents) {
		if found := parent.having(name, value); len(found) > 0 {
			return belongs(found)
		}
	}
	return ""
}

func belongs(places []string) string {
	switch last := len(places) - 1; {
	case len(places) > maxPlaces:
		return ""
	case places[0] == "":
		return "it belongs to the top level"
	case last == 0:
		return "it belongs to " + places[0]
	default:
		return "it belongs to " + strings.Join(places[:last], ", ") + " or " + places[last]
	}
}

// place is a field of an object, and its type.
type place struct {
	path string
	of   reflect.Type
}

// having returns the paths of the fields that have a field with the name for such a value: the place itself, or those nearest
// below it.
func (p place) having(name string, value any) []string {
	level := []place{p}
	for range maxDepth {
		var found []string
		var next []place
		for _, each := range level {
			fields := fieldsOf(each.of)
			if t, has := fields[name]; has && holds(t, value) {
				found = append(found, each.path)
			}
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				// Controllers and commands set these.
				if below := fields[field]; field != "status" && field != "ephemeralContainers" && field != "managedFields" {
					next = append(next, place{join(each.path, field) + brackets(below), below})
				}
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}

// holds reports whether a field of the type can have the value.
func holds(t reflect.Type, value any) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value.(type) {
	case nil:
		return true
	case map[string]any:
		return t.Kind() == reflect.Struct || t.Kind() == reflect.Map
	case []any:
		return t.Kind() == reflect.Slice
	default:
		// Types such as quantities are written as texts, and have no fields.
		return t.Kind() != reflect.Slice && t.Kind() != reflect.Map && len(fieldsOf(t)) == 0
	}
}

func brackets(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		return "[]"
	}
	return ""
}

func join(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

func withoutIndex(step string) string {
	name, _, _ := strings.Cut(step, "[")
	return name
}

// fieldsOf returns the types of the fields of a struct, by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return fields
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[*runtime.RawExtension]():
			fields[name] = contentOf(name, field.Type)
		case name != "" && name != "-":
			fields[name] = field.Type
		case field.Anonymous:
			for name, inlined := range fieldsOf(field.Type) {
				fields[name] = inlined
			}
		}
	}
	return fields
}

// contentOf returns the type of what a field without a type contains, by its name.
func contentOf(name string, raw reflect.Type) reflect.Type {
	if name == "jobTemplate" {
		return reflect.TypeFor[batchv1.JobTemplateSpec]()
	}
	for _, kind := range kinds.Table() {
		if strings.EqualFold(kind.Kind+"Template", name) {
			return reflect.TypeOf(kind.New()).Elem()
		}
	}
	return raw
}
