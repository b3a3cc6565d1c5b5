// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const validPullJob = `
apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata:
  name: pull
spec:
  image: registry.example.com:5000/game/server:v2
  pullSecrets: [registry]
  selector:
    matchLabels: {pool: game}
    matchExpressions: [{key: zone, operator: In, values: [a]}]
  parallelism: 10%
  pullPolicy: {timeoutSeconds: 60, backoffLimit: 1}
  completionPolicy: {type: Always, activeDeadlineSeconds: 600, ttlSecondsAfterFinished: 60}
  imagePullPolicy: Always
`

func TestInvalidPullJobsAreRejected(t *testing.T) {
	t.Parallel()
	const form, end = "must be the name of an image in lower case", "must not be set if type is Never: such a job does not end"
	labels := map[string]any{"matchLabels": map[string]any{"app": "game"}}
	tests := map[string]rejection{
		"no image":          one("spec.image", remove{}, "Required value"),
		"image empty":       one("spec.image", "", "at least 1"),
		"upper case":        one("spec.image", "Game:1", form),
		"space":             one("spec.image", "game: 1", form),
		"short digest":      one("spec.image", "game@sha256:0123", form),
		"secret":            one("spec.pullSecrets", []any{"Registry"}, "should match").at("spec.pullSecrets[0]"),
		"names and labels":  one("spec.selector.names", []any{"n1"}, "must not be set together with matchLabels"),
		"name twice":        one("spec.selector", map[string]any{"names": []any{"n1", "n1"}}, "Duplicate value").at("spec.selector.names[1]"),
		"label key":         one("spec.selector.matchLabels", map[string]any{"a/b/c": "d"}, "must be qualified names"),
		"label value":       one("spec.selector.matchLabels", map[string]any{"a": "-"}, "should match").at("spec.selector.matchLabels.a"),
		"operator":          one("spec.selector.matchExpressions", []any{map[string]any{"key": "a", "operator": "Is"}}, "Unsupported value").at("spec.selector.matchExpressions[0].operator"),
		"values":            one("spec.selector.matchExpressions", []any{map[string]any{"key": "a", "operator": "In"}}, "must contain at least one value").at("spec.selector.matchExpressions[0].values"),
		"two selectors":     one("spec.podSelector", labels, "must not be set together with selector"),
		"pod selector":      one("spec.podSelector", map[string]any{}, "must contain at least one label").with(edit{"spec.selector", remove{}}),
		"parallelism":       one("spec.parallelism", -1, "greater than or equal to 0"),
		"percentage":        one("spec.parallelism", "101%", "should match"),
		"text":              one("spec.parallelism", "all", "should match"),
		"timeout":           one("spec.pullPolicy.timeoutSeconds", 0, "greater than or equal to 1"),
		"attempts":          one("spec.pullPolicy.backoffLimit", -1, "greater than or equal to 0"),
		"completion":        one("spec.completionPolicy.type", "Sometimes", `"Always", "Never"`),
		"deadline 0":        one("spec.completionPolicy.activeDeadlineSeconds", 0, "greater than or equal to 1"),
		"ttl":               one("spec.completionPolicy.ttlSecondsAfterFinished", -1, "greater than or equal to 0"),
		"never with ttl":    one("spec.completionPolicy", map[string]any{"type": "Never", "ttlSecondsAfterFinished": 1}, end).at("spec.completionPolicy.ttlSecondsAfterFinished"),
		"never with an end": one("spec.completionPolicy", map[string]any{"type": "Never", "activeDeadlineSeconds": 1}, end).at("spec.completionPolicy.activeDeadlineSeconds"),
		"pull policy":       one("spec.imagePullPolicy", "Never", `"IfNotPresent", "Always"`),
		"sandbox":           one("spec.sandboxConfig", map[string]any{"labels": map[string]any{"a": "b"}}, "is not supported: the sandbox of a pull is that of the kubelet"),
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		manifest := strings.Replace(validPullJob, "v1alpha1", version, 1)
		expect.NoErrorf(t, create(t.Context(), parsed(t, manifest, "default", edit{"metadata.name", "pull-" + version})), "the unchanged object is rejected")
		for name, test := range tests {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				expectRejection(t, create(t.Context(), parsed(t, manifest, "default", test.edits...)), test)
			})
		}
	}
}

func TestValidPullJobsAreAccepted(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{
		"name": "game", "tag": "game:1", "path": "library/game_server-2.x:v1_A", "port": "localhost:5000/game:1", "ip": "[2001:db8::1]:5000/game",
		"digest": "game@sha256:" + strings.Repeat("0a", 32), "both": "r.example/game:1@sha256:" + strings.Repeat("0a", 32),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, validPullJob, "default", edit{"metadata.name", "image-" + name}, edit{"spec.image", image})
			expect.NoError(t, create(t.Context(), object))
		})
	}
}

func TestDefaultsOfPullJobs(t *testing.T) {
	t.Parallel()
	object := parsed(t, "apiVersion: apps.kruise.io/v1beta1\nkind: ImagePullJob\nmetadata: {name: defaults}\nspec: {image: 'game:1'}\n", "default")
	expect.NoError(t, create(t.Context(), object))
	want := map[string]any{
		"image": "game:1", "parallelism": int64(1), "imagePullPolicy": "IfNotPresent", "completionPolicy": map[string]any{"type": "Always"},
		"pullPolicy": map[string]any{"timeoutSeconds": int64(600), "backoffLimit": int64(3)},
	}
	expect.Equal(t, want, object.Object["spec"], "defaults")
}

// TestFixedFieldsOfPullJobs checks that only the image and the selectors cannot be changed.
func TestFixedFieldsOfPullJobs(t *testing.T) {
	t.Parallel()
	object := parsed(t, validPullJob, "default", edit{"metadata.name", "fixed"})
	expect.NoError(t, server.Client.Create(t.Context(), object))
	patch := func(spec string) error {
		return server.Client.Patch(t.Context(), object.DeepCopyObject().(*unstructured.Unstructured), env.MergePatch(`{"spec": `+spec+`}`), client.DryRunAll)
	}
	for path, spec := range map[string]string{
		"spec.image": `{"image": "game:2"}`, "spec.selector": `{"selector": {"matchLabels": {"pool": "other"}}}`,
		"spec.selector ": `{"selector": null}`, "spec.podSelector": `{"selector": null, "podSelector": {"matchLabels": {"a": "b"}}}`,
	} {
		err := patch(spec)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(path)+": Invalid value") || !strings.Contains(err.Error(), "cannot be changed: create another job") {
			t.Errorf("%s: error %v", spec, err)
		}
	}
	for _, spec := range []string{
		`{"parallelism": 0}`, `{"pullPolicy": {"timeoutSeconds": 1, "backoffLimit": 0}}`, `{"imagePullPolicy": "IfNotPresent"}`, `{"pullSecrets": []}`,
		`{"completionPolicy": {"type": "Never", "activeDeadlineSeconds": null, "ttlSecondsAfterFinished": null}}`,
	} {
		if err := patch(spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
