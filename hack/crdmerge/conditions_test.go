// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestRelaxConditions(t *testing.T) {
	t.Parallel()
	const (
		others    = "message: {type: string}, observedGeneration: {type: integer}, status: {enum: ['True', 'False']}, type: {pattern: a}"
		condition = "{required: [lastTransitionTime, message, reason, status, type], properties: {" + others +
			", lastTransitionTime: {type: string}, reason: {type: string, minLength: 1, pattern: a, maxLength: 9}}}"
		relaxed = "{required: [status, type], properties: {" + others + ", lastTransitionTime: {type: string}, reason: {type: string, maxLength: 9}}}"
	)
	for name, test := range map[string]struct{ schema, want string }{
		"conditions":      {"properties: {status: {properties: {conditions: {items: " + condition + "}}}}", "properties: {status: {properties: {conditions: {items: " + relaxed + "}}}}"},
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
