// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Object decodes the JSON of an object into one of its type, which is empty. An object that does not fit is isolated:
// it has the fields of the first level of spec and status that fit as a whole, and a record of the others. A selector
// or a template of which a part is missing would be another one. The error is about JSON that is no object with
// metadata.
func Object(data []byte, into runtime.Object) error {
	object, ok := into.(metav1.Object)
	if !ok {
		return fmt.Errorf("decode into a %T: it has no metadata", into)
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, into) == nil {
		clean(object)
		return nil
	}
	return isolated(data, into, object)
}

func isolated(data []byte, into runtime.Object, object metav1.Object) error {
	document := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	of := reflect.TypeOf(into).Elem()
	found := faults(document, of)
	missing := remove(document, found)
	err := decode(document, into, of)
	if err != nil || len(found) == 0 {
		// The decoder refuses more than the walk finds.
		for _, field := range []string{"spec", "status"} {
			delete(document, field)
			missing = append(missing, field)
		}
		if len(found) == 0 {
			found = []Fault{{Path: "spec", Value: "does not decode", Want: "a " + of.Name()}}
		}
		err = decode(document, into, of)
	}
	if err != nil {
		return fmt.Errorf("decode metadata: %w", err)
	}
	clean(object)
	record(object, found, missing)
	return nil
}

// decode replaces the object by the document.
func decode(document map[string]any, into runtime.Object, of reflect.Type) error {
	encoded, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode JSON: %w", err)
	}
	fresh := reflect.New(of)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, fresh.Interface()); err != nil {
		return fmt.Errorf("decode the rest: %w", err)
	}
	reflect.ValueOf(into).Elem().Set(fresh.Elem())
	return nil
}

// remove removes the fields of the first level of spec, status and metadata, and other fields of the first level, that have faults, and
// returns them.
func remove(document map[string]any, found []Fault) (missing []string) {
	for _, fault := range found {
		name := fault.root[0]
		if parent, ok := document[name].(map[string]any); ok && fault.root[1] != "" {
			delete(parent, fault.root[1])
			name += "." + fault.root[1]
		} else {
			delete(document, name)
		}
		if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// list decodes the JSON of a list, each item by itself.
func list(data []byte, into runtime.Object) error {
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &raw); err != nil {
		return fmt.Errorf("decode the list: %w", err)
	}
	pointer, err := meta.GetItemsPtr(into)
	if err != nil {
		return fmt.Errorf("decode the list: %w", err)
	}
	listed, err := meta.ListAccessor(into)
	if err != nil {
		return fmt.Errorf("decode the list: %w", err)
	}
	items := reflect.ValueOf(pointer).Elem()
	if items.Kind() != reflect.Slice || items.Type().Elem().Kind() != reflect.Struct {
		return errors.New("decode the list: its items are not structs")
	}
	items.Set(reflect.MakeSlice(items.Type(), len(raw.Items), len(raw.Items)))
	for i := range raw.Items {
		item, ok := items.Index(i).Addr().Interface().(runtime.Object)
		if !ok {
			return errors.New("decode the list: its items are not objects")
		}
		if err := Object(raw.Items[i], item); err != nil {
			return fmt.Errorf("decode item %d: %w", i, err)
		}
	}
	listed.SetResourceVersion(raw.ResourceVersion)
	listed.SetContinue(raw.Continue)
	listed.SetRemainingItemCount(raw.RemainingItemCount)
	into.GetObjectKind().SetGroupVersionKind(raw.GroupVersionKind())
	return nil
}
