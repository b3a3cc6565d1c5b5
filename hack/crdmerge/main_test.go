// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

const generated = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          port:
            description: port in the words of another project.
            type: integer
          tags:
            additionalProperties:
              type: string
            type: object
        type: object
`

func TestMergeCRD(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		crd, part string
		want      string
		wantErr   string
	}{
		"adds and replaces descriptions": {
			crd: generated,
			part: `
properties:
  port:
    description: port of the pod.
    minimum: 1
  tags:
    additionalProperties:
      maxLength: 63
`,
			want: `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          port:
            description: port of the pod.
            minimum: 1
            type: integer
          tags:
            additionalProperties:
              maxLength: 63
              type: string
            type: object
        type: object
`,
		},
		"adds properties to an open schema": {
			crd:  strings.Replace(generated, "type: integer", "x-kubernetes-preserve-unknown-fields: true", 1),
			part: "properties: {port: {type: object, properties: {number: {minimum: 1}}}}",
			want: strings.Replace(generated, `            type: integer
`, `            properties:
              number:
                minimum: 1
            type: object
            x-kubernetes-preserve-unknown-fields: true
`, 1),
		},
		"adds properties to an open schema with properties": {
			crd: strings.Replace(
				generated, "type: integer",
				"properties:\n              name:\n                type: string\n            x-kubernetes-preserve-unknown-fields: true", 1,
			),
			part: "properties: {port: {properties: {number: {minimum: 1}}}}",
			want: strings.Replace(generated, `            type: integer
`, `            properties:
              name:
                type: string
              number:
                minimum: 1
            x-kubernetes-preserve-unknown-fields: true
`, 1),
		},
		"adds properties to an object without any": {
			crd: strings.Replace(
				generated, "            description: port in the words of another project.\n            type: integer", "            type: object", 1,
			),
			part: "properties: {port: {properties: {name: {minLength: 1}}}}",
			want: strings.Replace(generated, `            description: port in the words of another project.
            type: integer`, `            properties:
              name:
                minLength: 1
            type: object`, 1),
		},
		"adds rules once": {
			crd:  strings.Replace(generated, "type: integer", "type: integer\n            x-kubernetes-validations:\n            - rule: self > 0", 1),
			part: "properties: {port: {x-kubernetes-validations: [{rule: self > 0}, {rule: self < 9}]}}",
			want: strings.Replace(
				generated, "type: integer",
				"type: integer\n            x-kubernetes-validations:\n            - rule: self > 0\n            - rule: self < 9", 1,
			),
		},
		"accepts equal values":        {crd: generated, part: "properties: {port: {type: integer}}", want: generated},
		"refuses an unknown property": {crd: generated, part: "properties: {ports: {minimum: 1}}", wantErr: ".properties.ports: no such property"},
		"refuses an unknown part": {
			crd: generated, part: "properties: {port: {items: {minimum: 1}}}", wantErr: ".properties.port.items: the schema has no such part",
		},
		"refuses a contradiction": {
			crd: generated, part: "properties: {port: {type: string}}",
			wantErr: ".properties.port.type: the schema has integer already, which string contradicts",
		},
		"refuses properties of a leaf": {
			crd: generated, part: "properties: {port: {properties: {number: {minimum: 1}}}}", wantErr: ".properties.port.properties.number: no such property",
		},
		"refuses a key twice": {crd: generated, part: "properties: {}\nproperties: {}", wantErr: "parse part"},
		"refuses a CRD without a version": {
			crd: "spec: {versions: []}", part: "{}", wantErr: "the CRD has no spec.versions",
		},
		"refuses a version without a schema": {
			crd: "spec: {versions: [{name: v1}]}", part: "{}", wantErr: "spec.versions[0] has no schema",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mergeCRD([]byte(test.crd), []byte(test.part))
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
			case err != nil:
				t.Fatal(err)
			default:
				expect.Equal(t, "merged CRD", test.want, string(got))
			}
		})
	}
}

// TestRun merges a part into two CRDs, and serves one of them in another version, twice.
func TestRun(t *testing.T) {
	t.Parallel()
	parts, crds := t.TempDir(), t.TempDir()
	refuses := func(what, want string, serve map[string]string) {
		t.Helper()
		expect.ErrorWith(t, what, want, run(parts, crds, serve))
	}
	refuses("no part", "no *.yaml in", nil)
	writeFile(t, filepath.Join(parts, "a+b.yaml"), "properties: {port: {minimum: 1}}")
	refuses("no CRD", "merge", nil)
	const (
		head   = "---\nspec:\n"
		names  = "  names: {kind: PodProbeMarker}\n"
		schema = "    schema: &schema\n      openAPIV3Schema:\n        properties:\n          port:\n            minimum: 1\n            type: integer\n        type: object\n"
	)
	generated := strings.NewReplacer("            minimum: 1\n", "", " &schema", "").Replace(schema)
	for _, name := range []string{"a.yaml", "b.yaml"} {
		writeFile(t, filepath.Join(crds, name), head+"  names: {kind: Unknown}\n  versions:\n  - name: v1\n"+generated)
	}
	refuses("no type", "no Go type of kind Unknown: add it to AddToScheme", nil)
	writeFile(t, filepath.Join(crds, "a.yaml"), head+names+"  versions:\n  - name: v1\n"+generated+"    served: true\n    storage: true\n")
	writeFile(t, filepath.Join(crds, "b.yaml"), head+names+"  versions:\n  - name: v1\n"+generated)
	expect.NoError(t, run(parts, crds, map[string]string{"a": "v1alpha1"}))
	const block = "  names:\n    kind: PodProbeMarker\n"
	for name, want := range map[string]string{
		"a.yaml": head + "  conversion:\n    strategy: None\n" + block + "  versions:\n  - name: v1\n" + schema + "    served: true\n    storage: true\n" +
			"  - name: v1alpha1\n    schema: *schema\n    served: true\n    storage: false\n",
		"b.yaml": head + block + "  versions:\n  - name: v1\n" + strings.Replace(schema, " &schema", "", 1),
	} {
		got, err := os.ReadFile(filepath.Join(crds, name))
		expect.NoError(t, err)
		expect.Equal(t, name, want, string(got))
	}
	refuses("already several versions", "must have one version", map[string]string{"a": "v2"})
	refuses("no such CRD", "serve", map[string]string{"c": "v2"})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

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
	expect.Equal(t, "schema", want, string(got))
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

func TestRelaxConditions(t *testing.T) {
	t.Parallel()
	const (
		others    = "message: {type: string}, observedGeneration: {type: integer}, status: {enum: ['True', 'False']}, type: {pattern: a}"
		condition = "{required: [lastTransitionTime, message, reason, status, type], properties: {" + others +
			", lastTransitionTime: {type: string}, reason: {type: string, minLength: 1, pattern: a, maxLength: 9}}}"
		relaxed = "{required: [status, type], properties: {" + others + ", lastTransitionTime: {type: string}, reason: {type: string, maxLength: 9}}}"
	)
	for name, test := range map[string]struct{ schema, want string }{
		"conditions": {
			"properties: {status: {properties: {conditions: {items: " + condition + "}}}}",
			"properties: {status: {properties: {conditions: {items: " + relaxed + "}}}}",
		},
		"another object":  {"{required: [reason], properties: {reason: {minLength: 1}}}", "{required: [reason], properties: {reason: {minLength: 1}}}"},
		"relaxed already": {relaxed, relaxed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got, want map[string]any
			for into, text := range map[*map[string]any]string{&got: test.schema, &want: test.want} {
				expect.NoError(t, yaml.Unmarshal([]byte(text), into))
			}
			if relaxConditions(got); cmp.Diff(want, got) != "" {
				t.Errorf("schema (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}
