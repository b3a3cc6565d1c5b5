// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/test/expect"
)

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
		"name too long":       one("metadata.name", strings.Repeat("a", 53), "52"),
		"no schedule":         one(schedule, remove{}, "Required value"),
		"schedule too long":   one(schedule, strings.Repeat("0,", 127)+"0 * * * *", "256"),
		"no template":         one("spec.template.jobTemplate", remove{}, "must be set, or broadcastJobTemplate"),
		"no spec of the job":  one("spec.template.jobTemplate.spec", remove{}, "Required value"),
		"both templates":      one("spec.template.broadcastJobTemplate", map[string]any{"spec": map[string]any{}}, "must not be set together with jobTemplate: use one of them"),
		"no spec, broadcast":  one("spec.template.broadcastJobTemplate", map[string]any{}, "Required value").with(edit{"spec.template.jobTemplate", remove{}}).at("spec.template.broadcastJobTemplate.spec"),
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
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		manifest := strings.Replace(validCronJob, "v1alpha1", version, 1)
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
