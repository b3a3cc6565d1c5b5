// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/test/expect"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.size <= self.max", message: must not be more than max}
            properties:
              size: {type: integer, minimum: 1}
              max: {type: integer, default: 10}
              names:
                type: array
                x-kubernetes-list-type: set
                items: {type: string}
`

func TestCheck(t *testing.T) {
	things, err := schema.New([]byte(definition), "v1")
	expect.NoError(t, err)
	for name, test := range map[string]struct {
		object string
		want   []string
	}{
		"valid":         {object: "{metadata: {name: x}, spec: {size: 10}}"},
		"unknown field": {object: "{spec: {size: 1, colour: red}}", want: []string{`spec.colour: Invalid value: "": unknown field`}},
		"required":      {object: "{spec: {}}", want: []string{"spec.size: Required value"}},
		"minimum": {
			object: "{spec: {size: 0}}", want: []string{"spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
		},
		"type":             {object: "{spec: {size: big}}", want: []string{`spec.size: Invalid value: "big": must be an integer`}},
		"number in quotes": {object: "{spec: {size: '2'}}", want: []string{`spec.size: Invalid value: "2": must be an integer: write 2 without quotes`}},
		"duration":         {object: "{spec: {size: 90s}}", want: []string{`spec.size: Invalid value: "90s": must be an integer: write 90`}},
		"fraction":         {object: "{spec: {size: 2.5}}", want: []string{"spec.size: Invalid value: 2.5: must be an integer: write 3"}},
		"boolean":          {object: "{spec: {size: true}}", want: []string{"spec.size: Invalid value: true: must be an integer"}},
		"mapping": {
			object: "{spec: {size: {a: 1}}}", want: []string{
				`spec.size.a: Invalid value: "": unknown field`, "spec.size: Invalid value: must be an integer, not a mapping",
			},
		},
		"no list": {object: "{spec: {size: 1, names: a b}}", want: []string{`spec.names: Invalid value: "a b": must be a list`}},
		"no string": {
			object: "{spec: {size: 1, names: [a, yes]}}", want: []string{`spec.names[1]: Invalid value: true: must be a string: write the value in quotes`},
		},
		"no mapping": {object: "{spec: [1]}", want: []string{"spec: Invalid value: must be a mapping, not a list"}},

		"duplicate in set":  {object: "{spec: {size: 1, names: [a, a]}}", want: []string{`spec.names[1]: Duplicate value: "a"`}},
		"rule with default": {object: "{spec: {size: 11}}", want: []string{`spec: Invalid value: must not be more than max`}},
		"several errors": {
			object: "{spec: {size: 0, colour: red}}", want: []string{
				`spec.colour: Invalid value: "": unknown field`, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := yaml.YAMLToJSON([]byte(test.object))
			expect.NoError(t, err)
			var object map[string]any
			expect.NoError(t, utiljson.Unmarshal(encoded, &object))
			var got []string
			for _, err := range things.Check(t.Context(), object) {
				got = append(got, err.Error())
			}
			expect.Equal(t, "errors", test.want, got)
		})
	}
}

func TestNew(t *testing.T) {
	for name, test := range map[string]struct {
		definition []byte
		version    string
		want       string
	}{
		"PodProbeMarkers": {definition: config.Definition("podprobemarkers.apps.kruise.io"), version: "v1alpha1"},
		"unknown version": {definition: []byte(definition), version: "v2", want: `CustomResourceDefinition things.example.com has no schema for version "v2"`},
		"invalid YAML":    {definition: []byte("kind: {"), version: "v1", want: "read CustomResourceDefinition: "},
		"invalid schema": {
			definition: []byte(strings.Replace(definition, "type: integer, minimum", `$ref: "#/x", minimum`, 1)), version: "v1", want: "compile schema",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schema.New(test.definition, test.version)
			if test.want == "" {
				expect.Success(t, err)
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestReversedRangesAreRefused compares the rule of the CRD, which compares the ends of a range digit by
// digit, with the comparison of numbers.
func TestReversedRangesAreRefused(t *testing.T) {
	sets, err := schema.New(config.Definition("statefulsets.apps.kruise.io"), "v1beta1")
	expect.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	number := func() string { return fmt.Sprintf("%0*d", 1+r.IntN(9), r.IntN([]int{10, 1000, 1e9}[r.IntN(3)])) }
	cases := []string{"3-5", "5-3", "3-3", "0-0", "10-9", "9-10", "007-7", "8-07", "999999999-999999998", "999999999-999999999", "1-999999999"}
	for range 500 {
		a := number()
		cases = append(cases, a+"-"+number(), a+"-"+a)
	}
	for _, entry := range cases {
		first, last, _ := strings.Cut(entry, "-")
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		object := map[string]any{
			"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"},
			"spec": map[string]any{
				"reserveOrdinals": []any{int64(7), entry},
				"selector":        map[string]any{"matchLabels": map[string]any{"app": "db"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "db"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "db", "image": "db"}}},
				},
			},
		}
		got, want := "", ""
		if errs := sets.Check(t.Context(), object); len(errs) > 0 {
			got = errs[0].Field + ": " + errs[0].Detail
		}
		if to < from {
			want = "spec.reserveOrdinals[1]: must not end below its start"
		}
		expect.Equal(t, fmt.Sprintf("range %s: error", entry), want, got)
	}
}
