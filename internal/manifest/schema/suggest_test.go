// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/manifest/schema"
)

func TestSuggestion(t *testing.T) {
	pod, deployment := reflect.TypeFor[corev1.Pod](), reflect.TypeFor[appsv1.Deployment]()
	for name, test := range map[string]struct {
		of         reflect.Type
		path, want string
	}{
		"missing letter":  {pod, "spec.containers[0].readinessProbe.periodSecond", "periodSeconds"},
		"wrong case":      {pod, "spec.containers[0].livenessprobe", "livenessProbe"},
		"inlined handler": {pod, "spec.containers[0].livenessProbe.httpget", "httpGet"},
		"top level":       {pod, "specs", "spec"},
		"template":        {deployment, "spec.template.spec.container", "containers"},
		"nothing similar": {pod, "spec.containers[0].frobnicate", ""},
		"unknown parent":  {pod, "spec.unknown.name", ""},
		"map":             {pod, "metadata.labels.x", ""},
		"very long":       {pod, "spec." + strings.Repeat("x", 2000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schema.Suggestion(test.path, test.of); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
