// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// What the decoders of quantities and times take as a text. That of quantities also takes most texts without a digit in front
// of the unit, such as "-" and "k", as zero.
const (
	quantity = `^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,18})? *$`
	dateTime = `^[-0-9]{10}T[:0-9]{8}([.,][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
)

// typer adds types to the parts of a schema that controller-gen leaves open: templates of pods and claims, containers
// and volumes. It follows the Go types, so the schema takes what the decoder of the controllers takes, and has
// the fields of the Kubernetes version in go.mod. It adds types only, and keeps unknown fields below those of a pod template: defaults, required fields
// or list types would refuse or change what the API server stores in a Deployment. A null is kept, as a zero value
// of the decoder. Of the parts that are not open, it only bounds integers.
type typer struct {
	// shared are the schemas by Go type, so that they are written once.
	shared map[reflect.Type]map[string]any
}

// typeOf returns the Go type of the objects of a kind.
func typeOf(kind string) (reflect.Type, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, seamarkv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	for gvk, t := range scheme.AllKnownTypes() {
		if gvk.Kind == kind {
			return t, nil
		}
	}
	return nil, fmt.Errorf("no Go type of kind %s: add it to AddToScheme of its package in api", kind)
}

// raw returns the type of the raw JSON in a field.
func raw(name string) (reflect.Type, bool) {
	switch name {
	case "jobTemplate":
		return reflect.TypeFor[batchv1.JobTemplateSpec](), true
	case "broadcastJobTemplate":
		return reflect.TypeFor[struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              v1alpha1.BroadcastJobSpec `json:"spec"`
		}](), true
	}
	return nil, false
}

// complete adds what the schema of a value of type t lacks. open says whether the schema above is open, which means
// that its properties need not be defined.
func (y typer) complete(s map[string]any, t reflect.Type, open bool) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	open = open || s[preserve] == true
	if len(s) == 0 || open && s["type"] == nil && s["x-kubernetes-int-or-string"] == nil {
		if err := scalar(s, t); err != nil {
			return err
		}
	}
	if s["type"] == "integer" && t.Kind() == reflect.Int32 || t == reflect.TypeFor[intstr.IntOrString]() {
		setMissing(s, "minimum", math.MinInt32)
		setMissing(s, "maximum", math.MaxInt32)
	}
	if t == reflect.TypeFor[metav1.Time]() {
		// A schema with a format takes any list.
		setMissing(s, "pattern", dateTime)
		s["minItems"], s["maxItems"] = 1, 0
	}
	err := y.children(s, t, open)
	if t == reflect.TypeFor[corev1.PodTemplateSpec]() {
		// kubectl kruise rollout undo sends $patch next to the two fields that a template has.
		delete(s, preserve)
	}
	return err
}

func setMissing(s map[string]any, key string, value any) {
	if s[key] == nil {
		s[key] = value
	}
}

// scalar sets the type of a schema.
func scalar(s map[string]any, t reflect.Type) error {
	delete(s, preserve)
	s["nullable"] = true
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		s["x-kubernetes-int-or-string"] = true
		return nil
	case reflect.TypeFor[resource.Quantity]():
		// The decoder takes texts and all numbers, such as 0.5. A schema has no type for that, and int-or-string
		// refuses 0.5, so that everything else is refused by bounds that it cannot meet.
		s[preserve], s["pattern"] = true, quantity
		s["not"] = map[string]any{"enum": []any{false, true}}
		s["minItems"], s["maxItems"], s["minProperties"], s["maxProperties"] = 1, 0, 1, 0
		return nil
	case reflect.TypeFor[metav1.Time]():
		s["type"], s["format"] = "string", "date-time"
		return nil
	case reflect.TypeFor[[]corev1.EphemeralContainer]():
		// Their types would be a sixth of the schema, and no template may have them.
		s["type"], s["maxItems"], s["items"] = "array", 0, map[string]any{preserve: true}
		return nil
	case reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[runtime.RawExtension]():
		s[preserve] = true
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		s["type"] = "string"
	case reflect.Bool:
		s["type"] = "boolean"
	case reflect.Int32, reflect.Int64:
		s["type"] = "integer"
	case reflect.Slice:
		s["type"] = "array"
	case reflect.Map:
		s["type"] = "object"
	case reflect.Struct:
		s["type"], s[preserve] = "object", true
	default:
		return fmt.Errorf("type %s is unknown", t)
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return fmt.Errorf("type %s has its own decoder, which is unknown", t)
	}
	return nil
}

// children completes the schemas of items, values and fields.
func (y typer) children(s map[string]any, t reflect.Type, open bool) error {
	switch {
	case t == reflect.TypeFor[[]corev1.EphemeralContainer]():
	case s["type"] == "array" && t.Kind() == reflect.Slice:
		return y.child(s, "items", t.Elem(), open)
	case s["type"] == "object" && t.Kind() == reflect.Map:
		return y.child(s, "additionalProperties", t.Elem(), open)
	case s["type"] == "object" && t.Kind() == reflect.Struct && (open || s["properties"] != nil):
		properties, _ := s["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
		}
		if err := y.fields(properties, t, open); err != nil || len(properties) == 0 {
			return err
		}
		s["properties"] = properties
	}
	return nil
}

// fields completes the properties of a struct.
func (y typer) fields(properties map[string]any, t reflect.Type, open bool) error {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			if err := y.fields(properties, f.Type, open); err != nil {
				return err
			}
			continue
		case name == "" || name == "-":
			continue
		}
		of, known := raw(name)
		if !known {
			of = f.Type
		}
		if err := y.child(properties, name, of, open); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// names returns the names of the shared schemas, those of the others are empty.
func (y typer) names() (map[uintptr]string, error) {
	names, types := map[uintptr]string{}, map[string]reflect.Type{}
	for t, shared := range y.shared {
		name := structName(t)
		if other := types[name]; name != "" && other != nil {
			return nil, fmt.Errorf("types %s and %s have the same name", t, other)
		}
		names[identity(shared)], types[name] = name, t
	}
	return names, nil
}

// structName returns the name of a struct, or of a list of structs.
func structName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return t.Name()
	case reflect.Slice:
		if name := structName(t.Elem()); name != "" {
			return name + "List"
		}
	}
	return ""
}

// child completes the schema under the key. A schema that does not exist yet is added if the schema above is open. It is
// that of all values of the type.
func (y typer) child(in map[string]any, key string, t reflect.Type, open bool) error {
	if below, exists := in[key].(map[string]any); exists {
		return y.complete(below, t, open)
	}
	if !open {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if y.shared[t] == nil {
		y.shared[t] = map[string]any{}
		if err := y.complete(y.shared[t], t, true); err != nil {
			return err
		}
	}
	in[key] = y.shared[t]
	return nil
}

// relaxConditions lets conditions have only a type and a status, as the CRDs of OpenKruise do: a client that writes the status
// of an object with such conditions, or another field of it, must not be refused. controller-gen generates the schema of the
// Go type of Kubernetes, whose zero values a client writes for what a condition does not have: an empty reason and message,
// and null for the time, which the API server drops because it is optional.
func relaxConditions(schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	if required, _ := schema["required"].([]any); isCondition(properties) && slices.Contains(required, any("reason")) {
		schema["required"] = []any{"status", "type"}
		reason, _ := properties["reason"].(map[string]any)
		delete(reason, "minLength")
		delete(reason, "pattern")
	}
	for _, property := range properties {
		if child, ok := property.(map[string]any); ok {
			relaxConditions(child)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		relaxConditions(items)
	}
}

// isCondition reports whether the properties are those of the Go type of conditions.
func isCondition(properties map[string]any) bool {
	return !slices.ContainsFunc([]string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}, func(name string) bool {
		_, ok := properties[name].(map[string]any)
		return !ok
	})
}
