// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
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
	wrong, best := steps[len(steps)-1], ""
	least := max(len(wrong)/3, 1) + 1
	for name := range fieldsOf(t) {
		d := distance(strings.ToLower(wrong), strings.ToLower(name))
		if d < least || d == least && best != "" && name < best {
			least, best = d, name
		}
	}
	return best
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

// distance returns the number of characters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
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
