// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestAdvice(t *testing.T) {
	pod, deployment := reflect.TypeFor[corev1.Pod](), reflect.TypeFor[appsv1.Deployment]()
	set, marker := reflect.TypeFor[v1alpha1.CloneSet](), reflect.TypeFor[v1alpha1.PodProbeMarker]()
	cron := reflect.TypeFor[v1alpha1.AdvancedCronJob]()
	for name, test := range map[string]struct {
		of    reflect.Type
		path  string
		value any
		want  string
	}{
		"missing letter":  {pod, "spec.containers[0].readinessProbe.periodSecond", nil, `did you mean "periodSeconds"?`},
		"wrong case":      {pod, "spec.containers[0].livenessprobe", nil, `did you mean "livenessProbe"?`},
		"inlined handler": {pod, "spec.containers[0].livenessProbe.httpget", nil, `did you mean "httpGet"?`},
		"top level":       {pod, "specs", nil, `did you mean "spec"?`},
		"template":        {deployment, "spec.template.spec.container", nil, `did you mean "containers"?`},
		"nothing similar": {pod, "spec.containers[0].frobnicate", nil, ""},
		"unknown parent":  {pod, "spec.unknown.name", nil, ""},
		"map":             {pod, "metadata.labels.x", nil, ""},
		"very long":       {pod, "spec." + strings.Repeat("x", 2000), nil, ""},

		"above the spec":       {deployment, "replicas", int64(3), "it belongs to spec"},
		"above the pod":        {deployment, "spec.containers", []any{}, "it belongs to spec.template.spec"},
		"above the containers": {deployment, "spec.template.image", "x", "it belongs to spec.template.spec.containers[] or spec.template.spec.initContainers[]"},
		"a volume's image":     {deployment, "spec.template.image", map[string]any{}, "it belongs to spec.template.spec.volumes[]"},
		"below the probe":      {pod, "spec.containers[0].livenessProbe.exec.periodSeconds", int64(1), "it belongs to spec.containers[0].livenessProbe"},
		"below the pod":        {pod, "spec.containers[0].serviceAccountName", "x", "it belongs to spec"},
		"similar in the pod":   {pod, "spec.readinessProbe", map[string]any{}, "it belongs to spec.containers[] or spec.initContainers[]"},
		"many places":          {pod, "spec.containers[0].port", int64(1), `did you mean "ports"?`},
		"at the side":          {deployment, "spec.strategy.minReadySeconds", int64(1), "it belongs to spec"},
		"below the top level":  {pod, "spec.metadata", map[string]any{}, "it belongs to the top level"},
		"two strategies":       {set, "spec.maxUnavailable", int64(1), "it belongs to spec.scaleStrategy or spec.updateStrategy"},
		"everywhere":           {deployment, "spec.path", "/", ""},
		"a marker's command":   {marker, "spec.probes[0].command", []any{}, "it belongs to spec.probes[0].probe.exec"},
		"a job's template":     {cron, "spec.template.jobTemplate.spec.completion", nil, `did you mean "completions"?`},
		"a job's pods":         {cron, "spec.template.broadcastJobTemplate.spec.containers", []any{}, "it belongs to spec.template.broadcastJobTemplate.spec.template.spec"},
		"the wrong type":       {deployment, "spec.containers", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "Advice", test.want, schema.Advice(test.path, test.of, test.value))
		})
	}
}
