// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestComplete completes a template of which a part is written manually. Fields of a part that is not open are not added.
func TestComplete(t *testing.T) {
	t.Parallel()
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(`
type: object
properties:
  parallelism: {type: integer}
  template:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties: {name: {type: string, maxLength: 63}}
`), &schema); err != nil {
		t.Fatal(err)
	}
	types := typer{shared: map[reflect.Type]map[string]any{}}
	err := types.complete(schema, reflect.TypeFor[struct {
		Parallelism *int32                       `json:"parallelism"`
		Other       string                       `json:"other"`
		Template    *corev1.LocalObjectReference `json:"template"`
		Secret      struct {
			corev1.LocalObjectReference `json:",inline"`
		} `json:"secret"`
	}](), false)
	expect.NoError(t, err)
	got, err := write(map[string]any{"schema": schema}, nil)
	expect.NoError(t, err)
	const want = `---
schema:
  properties:
    parallelism:
      maximum: 2147483647
      minimum: -2147483648
      type: integer
    template:
      properties:
        name:
          maxLength: 63
          type: string
      type: object
      x-kubernetes-preserve-unknown-fields: true
  type: object
`
	expect.Equal(t, want, string(got), "schema")
	for _, unknown := range []reflect.Type{reflect.TypeFor[metav1.Duration](), reflect.TypeFor[[]byte](), reflect.TypeFor[float32]()} {
		if err := types.complete(map[string]any{}, unknown, true); err == nil {
			t.Errorf("%s has a schema", unknown)
		}
	}
}

// TestQuantityIsWhatTheDecoderTakes compares the pattern of quantities with their decoder, for all texts of four of the parts
// below. Only texts without a number may differ, and only those that the pattern refuses.
func TestQuantityIsWhatTheDecoderTakes(t *testing.T) {
	t.Parallel()
	pattern, number := regexp.MustCompile(quantity), regexp.MustCompile("^ *-?[.]?[0-9]")
	parts := []string{"", "-", "1", "0", ".", "e", "E", "k", "K", "i", "m", "M", "G", "B", " ", "_"}
	for i := range len(parts) * len(parts) * len(parts) * len(parts) {
		var text strings.Builder
		for n := i; n > 0; n /= len(parts) {
			text.WriteString(parts[n%len(parts)])
		}
		encoded, err := json.Marshal(text.String())
		expect.NoError(t, err)
		var decoded resource.Quantity
		err = decoded.UnmarshalJSON(encoded)
		matches := pattern.MatchString(text.String())
		if err != nil && matches || err == nil && !matches && number.MatchString(text.String()) {
			t.Errorf("%q: the pattern says %t, the decoder %v", text.String(), matches, err)
		}
	}
}
