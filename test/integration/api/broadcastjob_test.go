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
		"name too long":    one("metadata.name", strings.Repeat("a", 64), "63"),
		"no template":      one("spec.template", remove{}, "Required value"),
		"no spec":          one(template, remove{}, "Required value"),
		"no containers":    one(containers, remove{}, "Required value"),
		"empty containers": one(containers, []any{}, "at least 1 items"),
		"no image":         one(containers, []any{map[string]any{"name": "main"}}, "Required value").at(containers + "[0].image"),
		"same names": one(
			containers, []any{map[string]any{"name": "a", "image": "a"}, map[string]any{"name": "a", "image": "b"}}, `several have the name "a"`,
		),
		"restartPolicy": one(template+".restartPolicy", "Always", `"OnFailure", "Never"`),
		"label of the name": one(
			"spec.template.metadata.labels", map[string]any{"broadcastjob-name": "a"},
			"must not contain broadcastjob-name and broadcastjob-controller-uid: the job sets them",
		),
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
	rejectsEach(t, validBroadcastJob, "default", tests)
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
	expect.Equal(t, "spec", want, spec)
}

const validCronJob = `
apiVersion: apps.kruise.io/v1alpha1
kind: AdvancedCronJob
metadata:
  name: report
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  startingDeadlineSeconds: 60
  concurrencyPolicy: Forbid
  paused: false
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 1
  template:
    jobTemplate:
      metadata: {labels: {app: report}}
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: "report:1"}]
`

func TestInvalidCronJobsAreRejected(t *testing.T) {
	t.Parallel()
	const schedule, form, zone = "spec.schedule", "must have five fields (minute 0-59, hour 0-23, day 1-31", "spec.timeZone"
	tests := map[string]rejection{
		"name too long":      one("metadata.name", strings.Repeat("a", 53), "52"),
		"no schedule":        one(schedule, remove{}, "Required value"),
		"schedule too long":  one(schedule, strings.Repeat("0,", 127)+"0 * * * *", "256"),
		"no template":        one("spec.template.jobTemplate", remove{}, "must be set, or broadcastJobTemplate"),
		"no spec of the job": one("spec.template.jobTemplate.spec", remove{}, "Required value"),
		"both templates": one(
			"spec.template.broadcastJobTemplate", map[string]any{"spec": map[string]any{}}, "must not be set together with jobTemplate: use one of them",
		),
		"no spec, broadcast": one(
			"spec.template.broadcastJobTemplate", map[string]any{}, "Required value",
		).with(edit{"spec.template.jobTemplate", remove{}}).at("spec.template.broadcastJobTemplate.spec"),
		"pulls of images":     one("spec.template.imageListPullJobTemplate", map[string]any{"spec": map[string]any{}}, "is not supported: use an ImagePullJob"),
		"policy":              one("spec.concurrencyPolicy", "Queue", `"Allow", "Forbid", "Replace"`),
		"deadline":            one("spec.startingDeadlineSeconds", -1, "greater than or equal to 0"),
		"successful history":  one("spec.successfulJobsHistoryLimit", -1, "greater than or equal to 0"),
		"failed history":      one("spec.failedJobsHistoryLimit", -1, "greater than or equal to 0"),
		"zone":                one(zone, "Europe/Atlantis", "unknown time zone"),
		"zone empty":          one(zone, "", "at least 1"),
		"zone Local":          one(zone, "Local", "must be a time zone of the IANA database"),
		"zone is an offset":   one(zone, "+02:00", "must be a time zone of the IANA database"),
		"two zones":           one(schedule, "TZ=Asia/Tokyo 0 0 * * *", "must not be set together with TZ= in schedule").at(zone),
		"zone of the prefix":  one(schedule, "CRON_TZ=Asia/Atlantis 0 0 * * *", "unknown time zone").with(edit{zone, remove{}}).at(schedule),
		"prefix alone":        one(schedule, "TZ=Asia/Tokyo", form).with(edit{zone, remove{}}),
		"@every is too short": one(schedule, "@every 900ms", "the duration of @every must be at least 1s"),
	}
	for name, text := range map[string]string{
		"four fields": "0 0 * *", "six fields": "0 0 0 * * *", "minute": "60 0 * * *", "hour": "0 24 * * *", "day": "0 0 32 * *", "day 0": "0 0 0 * *",
		"month": "0 0 1 13 *", "weekday": "0 0 * * 7", "name": "0 0 * * FRIDAY", "step 0": "*/0 * * * *", "descriptor": "@fortnightly",
		"@every without a unit": "@every 5", "comma": "0,,1 * * * *", "L": "0 0 L * *",
	} {
		tests[name] = one(schedule, text, form)
	}
	rejectsEach(t, validCronJob, "default", tests)
}

func TestValidCronJobsAreAccepted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"every-minute": "* * * * *", "lists": "0,15-20/2,*/30 ?,3 1,31 JAN-mar,12 sun,2-FRI", "spaces": "  5   4 * *  1 ", "weekly": "@weekly",
		"every": "@every 1h30m", "from": "5/15 * * * *", "tz": "TZ=Asia/Tokyo 0 9 * * *", "cron-tz": "CRON_TZ=America/Argentina/Buenos_Aires @daily",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, validCronJob, "default", edit{"metadata.name", name}, edit{"spec.schedule", text}, edit{"spec.timeZone", remove{}},
				edit{"spec.concurrencyPolicy", remove{}}, edit{"spec.successfulJobsHistoryLimit", remove{}}, edit{"spec.failedJobsHistoryLimit", remove{}})
			expect.NoError(t, create(t.Context(), object))
			policy, _, _ := unstructured.NestedString(object.Object, "spec", "concurrencyPolicy")
			labels, _, _ := unstructured.NestedString(object.Object, "spec", "template", "jobTemplate", "metadata", "labels", "app")
			if policy != "Allow" || labels != "report" {
				t.Errorf("concurrencyPolicy %q, label of the template %q", policy, labels)
			}
			succeeded, _, _ := unstructured.NestedInt64(object.Object, "spec", "successfulJobsHistoryLimit")
			failed, _, _ := unstructured.NestedInt64(object.Object, "spec", "failedJobsHistoryLimit")
			if succeeded != 3 || failed != 1 {
				t.Errorf("%d succeeded and %d failed Jobs are kept by default, want 3 and 1", succeeded, failed)
			}
		})
	}
}

func TestBroadcastJobTemplatesAreAccepted(t *testing.T) {
	t.Parallel()
	object := parsed(t, validCronJob, server.Namespace(t), edit{"spec.template", map[string]any{"broadcastJobTemplate": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "report"}}, "spec": map[string]any{"parallelism": int64(1), "later": "field"},
	}}})
	expect.NoError(t, create(t.Context(), object))
	if later, _, _ := unstructured.NestedString(object.Object, "spec", "template", "broadcastJobTemplate", "spec", "later"); later != "field" {
		t.Error("a field of the template is lost")
	}
}

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
		"no image":         one("spec.image", remove{}, "Required value"),
		"image empty":      one("spec.image", "", "at least 1"),
		"upper case":       one("spec.image", "Game:1", form),
		"space":            one("spec.image", "game: 1", form),
		"short digest":     one("spec.image", "game@sha256:0123", form),
		"secret":           one("spec.pullSecrets", []any{"Registry"}, "should match").at("spec.pullSecrets[0]"),
		"names and labels": one("spec.selector.names", []any{"n1"}, "must not be set together with matchLabels"),
		"name twice":       one("spec.selector", map[string]any{"names": []any{"n1", "n1"}}, "Duplicate value").at("spec.selector.names[1]"),
		"label key":        one("spec.selector.matchLabels", map[string]any{"a/b/c": "d"}, "must be qualified names"),
		"label value":      one("spec.selector.matchLabels", map[string]any{"a": "-"}, "should match").at("spec.selector.matchLabels.a"),
		"operator": one(
			"spec.selector.matchExpressions", []any{map[string]any{"key": "a", "operator": "Is"}}, "Unsupported value",
		).at("spec.selector.matchExpressions[0].operator"),
		"values": one(
			"spec.selector.matchExpressions", []any{map[string]any{"key": "a", "operator": "In"}}, "must contain at least one value",
		).at("spec.selector.matchExpressions[0].values"),
		"two selectors": one("spec.podSelector", labels, "must not be set together with selector"),
		"pod selector":  one("spec.podSelector", map[string]any{}, "must contain at least one label").with(edit{"spec.selector", remove{}}),
		"parallelism":   one("spec.parallelism", -1, "greater than or equal to 0"),
		"percentage":    one("spec.parallelism", "101%", "should match"),
		"text":          one("spec.parallelism", "all", "should match"),
		"timeout":       one("spec.pullPolicy.timeoutSeconds", 0, "greater than or equal to 1"),
		"attempts":      one("spec.pullPolicy.backoffLimit", -1, "greater than or equal to 0"),
		"completion":    one("spec.completionPolicy.type", "Sometimes", `"Always", "Never"`),
		"deadline 0":    one("spec.completionPolicy.activeDeadlineSeconds", 0, "greater than or equal to 1"),
		"ttl":           one("spec.completionPolicy.ttlSecondsAfterFinished", -1, "greater than or equal to 0"),
		"never with ttl": one(
			"spec.completionPolicy", map[string]any{"type": "Never", "ttlSecondsAfterFinished": 1}, end,
		).at("spec.completionPolicy.ttlSecondsAfterFinished"),
		"never with an end": one(
			"spec.completionPolicy", map[string]any{"type": "Never", "activeDeadlineSeconds": 1}, end,
		).at("spec.completionPolicy.activeDeadlineSeconds"),
		"pull policy": one("spec.imagePullPolicy", "Never", `"IfNotPresent", "Always"`),
		"sandbox": one(
			"spec.sandboxConfig", map[string]any{"labels": map[string]any{"a": "b"}}, "is not supported: the sandbox of a pull is that of the kubelet",
		),
	}
	rejectsEach(t, validPullJob, "default", tests)
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
	expect.Equal[any](t, "defaults", want, object.Object["spec"])
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
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(path)+": Invalid value") ||
			!strings.Contains(err.Error(), "cannot be changed: create another job") {
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
