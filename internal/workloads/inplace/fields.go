// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// differentField returns the path of a field that differs in the specs, empty if they mean the same.
func differentField(a, b *corev1.PodSpec) string {
	if equality.Semantic.DeepEqual(a, b) {
		return ""
	}
	if len(a.Containers) == len(b.Containers) {
		for i := range a.Containers {
			if name := firstDifference(a.Containers[i], b.Containers[i]); name != "" {
				return "containers[" + a.Containers[i].Name + "]." + name
			}
		}
	}
	return firstDifference(*a, *b)
}

// firstDifference returns the JSON name of the first field that differs in the structs.
func firstDifference(a, b any) string {
	left, right := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range left.NumField() {
		if !equality.Semantic.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			name, _, _ := strings.Cut(left.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}
