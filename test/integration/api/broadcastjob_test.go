// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// validBroadcastJob has every part of a BroadcastJob.
	validBroadcastJob = `
apiVersion: apps.kruise.io/v1alpha1
kind: BroadcastJob
metadata:
  name: report
spec:
  parallelism: 10%
  paused: true
  completionPolicy: {type: Always, activeDeadlineSeconds: 600, ttlSecondsAfterFinished: 0}
  failurePolicy: {type: Continue, restartLimit: 3}
  template:
    metadata:
      labels: {app: report}
    spec:
      restartPolicy: Never
      activeDeadlineSeconds: 60
      initContainers: [{name: init, image: "init:1"}]
      containers: [{name: main, image: "report:1"}]
`
	smallBroadcastJob = `
apiVersion: apps.kruise.io/v1alpha1
kind: BroadcastJob
metadata: {name: report}
spec:
  template:
    spec: {containers: [{name: main, image: "report:1"}]}
`
)

func TestInvalidBroadcastJobsAreRejected(t *testing.T) {
	t.Parallel()
	const completion, ends, template = "spec.completionPolicy", "must not be set if type is Never: such a job does not end", "spec.template.spec"
	containers := template + ".containers"
	tests := map[string]rejection{
		"name too long":      one("metadata.name", strings.Repeat("a", 64), "63"),
		"no template":        one("spec.template", remove{}, "Required value"),
		"no spec":            one(template, remove{}, "Required value"),
		"no containers":      one(containers, remove{}, "Required value"),
		"empty containers":   one(containers, []any{}, "at least 1 items"),
		"no image":           one(containers, []any{map[string]any{"name": "main"}}, "Required value").at(containers + "[0].image"),
		"same names":         one(containers, []any{map[string]any{"name": "a", "image": "a"}, map[string]any{"name": "a", "image": "b"}}, `several have the name "a"`),
		"restartPolicy":      one(template+".restartPolicy", "Always", `"OnFailure", "Never"`),
		"label of the name":  one("spec.template.metadata.labels", map[string]any{"broadcastjob-name": "a"}, "must not contain broadcastjob-name and broadcastjob-controller-uid: the job sets them"),
		"label of the UID":   one("spec.template.metadata.labels", map[string]any{"broadcastjob-controller-uid": "a"}, "the job sets them"),
		"parallelism":        one("spec.parallelism", -1, "greater than or equal to 0"),
		"parallelism, part":  one("spec.parallelism", "101%", "spec.parallelism"),
		"completion type":    one(completion+".type", "Sometimes", `"Always", "Never"`),
		"deadline 0":         one(completion+".activeDeadlineSeconds", 0, "greater than or equal to 1"),
		"negative time":      one(completion+".ttlSecondsAfterFinished", -1, "greater than or equal to 0"),
		"deadline of Never":  one(completion, map[string]any{"type": "Never", "activeDeadlineSeconds": 1}, ends).at(completion + ".activeDeadlineSeconds"),
		"time of Never":      one(completion, map[string]any{"type": "Never", "ttlSecondsAfterFinished": 1}, ends).at(completion + ".ttlSecondsAfterFinished"),
		"failure type":       one("spec.failurePolicy.type", "Ignore", `"FailFast", "Continue", "Pause"`),
		"negative restarts":  one("spec.failurePolicy.restartLimit", -1, "greater than or equal to 0"),
		"value of the label": one("spec.template.metadata.labels", map[string]any{"app": "a b"}, "should match").at("spec.template.metadata.labels.app"),
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		manifest := strings.Replace(validBroadcastJob, "v1alpha1", version, 1)
		if err := create(t.Context(), parsed(t, manifest, "default", edit{"metadata.name", "report-" + version})); err != nil {
			t.Fatalf("the unchanged object is rejected: %v", err)
		}
		for name, test := range tests {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				expectRejection(t, create(t.Context(), parsed(t, manifest, "default", test.edits...)), test)
			})
		}
	}
}

func TestBroadcastJobDefaults(t *testing.T) {
	t.Parallel()
	object := parsed(t, smallBroadcastJob, server.Namespace(t))
	expect.NoError(t, create(t.Context(), object))
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	expect.NoError(t, err)
	delete(spec, "template")
	want := map[string]any{
		"parallelism": int64(1<<31 - 1), "completionPolicy": map[string]any{"type": "Always"}, "failurePolicy": map[string]any{"type": "FailFast"},
	}
	expect.Equal(t, want, spec, "spec")
}
