// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

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
