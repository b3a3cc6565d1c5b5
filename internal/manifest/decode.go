// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	crdschema "github.com/seamark-dev/seamark/internal/manifest/schema"
)

// part is a part of an object that is decoded.
type part struct {
	// object is the whole object as it was written, and of the type of its kind.
	object map[string]any
	of     reflect.Type
	// path is that of the part. It is empty for the whole object.
	path string
}

// whole returns the whole object, which has the type that into points to.
func whole(object *unstructured.Unstructured, into any) part {
	return part{object: object.Object, of: reflect.TypeOf(into).Elem()}
}

// decode decodes JSON strictly. It returns an error for each unknown field, with advice, or the one
// for the first value of a wrong type.
func (p part) decode(encoded []byte, into any) (unknown []error, wrong error) {
	errs, err := kjson.UnmarshalStrict(encoded, into)
	if typed := (*json.UnmarshalTypeError)(nil); errors.As(err, &typed) {
		return nil, p.typeError(typed)
	} else if err != nil {
		return nil, err //nolint:wrapcheck // it is about the JSON
	}
	for i := range errs {
		if path, is := crdschema.UnknownFieldIn(errs[i]); is {
			errs[i] = p.unknown(path)
		}
	}
	return errs, nil
}

// decode decodes a part of an object and adds the errors. It reports whether there is none. Those about the types of values
// are left out if a schema has refused the object: it has found them.
func (r *reader) decode(at Place, of part, encoded []byte, into any, refused bool) bool {
	unknown, wrong := of.decode(encoded, into)
	addErrors(r, at, unknown)
	if wrong != nil && !refused {
		r.addError(at, wrong)
	}
	return len(unknown) == 0 && wrong == nil
}

// unknown returns the error for a field of the part that does not exist.
func (p part) unknown(path string) error {
	path = p.at(path)
	return &fieldError{path, crdschema.Unknown(p.object, path, p.of)}
}

// at returns the path in the object of a path in the part.
func (p part) at(path string) string {
	if p.path == "" {
		return path
	}
	return p.path + "." + path
}

// typeError returns the error for a value of a wrong type, with what to write instead if that is
// likely. The decoder knows the value only if it is a number.
func (p part) typeError(wrong *json.UnmarshalTypeError) error {
	isText, expected, fix := wrong.Value == "string", wrong.Type.String(), ""
	switch kind := wrong.Type.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Uint64:
		expected = "an integer"
		if isText {
			fix = ": write a number without quotes"
		}
	case kind == reflect.String:
		expected, fix = "a string", ": write the value in quotes"
	case kind == reflect.Slice:
		expected = "a list"
		if isText && wrong.Type.Elem().Kind() == reflect.String {
			fix = `, such as ["cat", "/tmp/x"]`
		}
	}
	return &fieldError{p.at(withoutTypes(wrong.Field)), fmt.Sprintf("must be %s, not %s%s", expected, wrong.Value, fix)}
}

// withoutTypes removes the names of embedded Go types, which begin with a capital letter, from
// the path of a field.
func withoutTypes(path string) string {
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	steps = slices.DeleteFunc(steps, func(step string) bool { return step[0] >= 'A' && step[0] <= 'Z' })
	return strings.Join(steps, ".")
}
