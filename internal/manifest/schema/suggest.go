// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxPath bounds the work for one suggestion, in bytes. The paths of real fields are shorter.
const maxPath = 1000

// WithSuggestion appends the field that was probably meant to the error of a strict decoder for an
// unknown field of an object of type t. It returns other errors unchanged.
func WithSuggestion(err error, t reflect.Type) error {
	match := regexp.MustCompile(`^unknown field "(.*)"$`).FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	if meant := Suggestion(match[1], t); meant != "" {
		return fmt.Errorf("%w: did you mean %q?", err, meant)
	}
	return err
}

// Suggestion returns the field of the same parent whose name is most similar to the last
// element of the path in an object of type t. It is empty if no name is similar, or if the path is
// longer than 1,000 bytes.
func Suggestion(path string, t reflect.Type) string {
	if len(path) > maxPath {
		return ""
	}
	steps := strings.Split(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(path, ""), ".")
	for _, step := range steps[:len(steps)-1] {
		next, ok := fieldsOf(t)[step]
		if !ok {
			return ""
		}
		t = next
	}
	return text.Closest(steps[len(steps)-1], slices.Sorted(maps.Keys(fieldsOf(t))))
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
