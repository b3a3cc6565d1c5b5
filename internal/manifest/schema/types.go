// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NotAList is the detail of the error for a value that must be a list.
const NotAList = "must be a list"

// readable returns the errors with the value instead of its type, and with a fix, if values have
// wrong types. A value leads to one error.
func readable(errs field.ErrorList, object map[string]any) field.ErrorList {
	wrong := regexp.MustCompile(`(?s) must be of type ([a-z0-9]+)(?:: "[^"]*"| (?:with format [a-z0-9]+|\(default format\)) in (.*))$`)
	seen := map[string]bool{}
	var out field.ErrorList
	for _, err := range errs {
		match := wrong.FindStringSubmatch(err.Detail)
		if match == nil {
			out = append(out, err)
			continue
		}
		path := err.Field
		if match[2] != "" {
			path = match[2]
		}
		value, found := ValueAt(object, path)
		if !found {
			out = append(out, err)
			continue
		}
		if !seen[path] {
			seen[path] = true
			out = append(out, typeError(path, value, match[1]))
		}
	}
	return out
}

// typeError returns the error for a value of another type than expected, which is a type of JSON
// or a format of it. Errors do not repeat mappings and lists, which may be long.
func typeError(path string, value any, expected string) *field.Error {
	detail, fix := "must be of type "+expected, ""
	switch expected {
	case "integer", "int32", "int64":
		detail, fix = "must be an integer", integerFix(value)
	case "string":
		detail, fix = "must be a string", ": write the value in quotes"
	case "array":
		detail = NotAList
	case "object":
		detail = "must be a mapping"
	}
	switch value.(type) {
	case map[string]any:
		value, fix = field.OmitValueType{}, ", not a mapping"
	case []any:
		value, fix = field.OmitValueType{}, ", not a list"
	}
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: value, Detail: detail + fix}
}

// integerFix returns what to write instead of the value, if that is likely.
func integerFix(value any) string {
	switch v := value.(type) {
	case float64:
		if math.Abs(v) < math.MaxInt32 {
			return fmt.Sprintf(": write %.0f", math.Ceil(v))
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 32); err == nil {
			return fmt.Sprintf(": write %d without quotes", n)
		}
		if d, err := time.ParseDuration(v); err == nil && d%time.Second == 0 {
			return fmt.Sprintf(": write %d", d/time.Second)
		}
	}
	return ""
}

// ValueAt returns the value of a field. The path has the form of field errors, in which keys of labels
// may have dots. It is false if the value has no such field.
func ValueAt(value any, path string) (any, bool) {
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		switch v := value.(type) {
		case map[string]any:
			longest := ""
			for key := range v {
				if rest, found := strings.CutPrefix(path, key); found && len(key) > len(longest) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
					longest = key
				}
			}
			if longest == "" {
				return nil, false
			}
			value, path = v[longest], path[len(longest):]
		case []any:
			index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value, path = v[i], rest
		default:
			return nil, false
		}
	}
	return value, true
}
