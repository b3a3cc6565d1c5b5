// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seamark-dev/seamark/internal/text"
)

// withSuggestion appends the field that was probably meant to the error for an unknown field
// of an object of type t. It returns other errors unchanged.
func withSuggestion(err error, t reflect.Type) error {
	match := regexp.MustCompile(`^unknown field "(.*)"$`).FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}
	if meant := suggestion(match[1], t); meant != "" {
		return fmt.Errorf("%w: did you mean %q?", err, meant)
	}
	return err
}

// suggestion returns the field of the same parent whose name is most similar to the last
// element of the path. It is empty if no name is similar.
func suggestion(path string, t reflect.Type) string {
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

// shiftLines adds a number to the line numbers in the error of a YAML parser.
func shiftLines(text string, lines int) string {
	return regexp.MustCompile(`\bline \d+`).ReplaceAllStringFunc(text, func(match string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return fmt.Sprintf("line %d", n+lines)
	})
}
