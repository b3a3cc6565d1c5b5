// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/test/expect"
)

const cronJob = `apiVersion: apps.kruise.io/v1alpha1
kind: AdvancedCronJob
metadata:
  name: report
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  template:
    jobTemplate:
      spec:
        backoffLimit: 1
        template:
          metadata:
            labels:
              app: worker
          spec:
            restartPolicy: Never
            containers:
            - name: worker
              image: busybox
`

func TestAdvancedCronJobs(t *testing.T) {
	e := func(edits ...string) string { return edited(t, cronJob, edits...) }
	const regular = `"30 2 * * *"`
	linter := &lint.Linter{}
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
		"valid":            {manifest: cronJob},
		"v1beta1":          {manifest: e("v1alpha1", "v1beta1")},
		"every":            {manifest: e(regular, `"@every 90m"`)},
		"29 February":      {manifest: e(regular, `"0 0 29 2 *"`)},
		"zone in schedule": {manifest: e(regular, `"TZ=Asia/Tokyo 30 2 * * *"`, "  timeZone: Europe/Berlin\n", "")},
		"reversed range": {
			manifest: e(regular, `"5-3 * * * *"`),
			want:     []string{`a.yaml:6:3 invalid-schedule spec.schedule: "5-3 * * * *": it must have five fields, or be a descriptor such as @daily: beginning of range (5) beyond end of range (3): 5-3`},
		},
		"never": {
			manifest: e("v1alpha1", "v1beta1", regular, `"0 0 30 2 *"`),
			want:     []string{`a.yaml:6:3 invalid-schedule spec.schedule: "0 0 30 2 *": no time within five years matches`},
		},
		"a rule of the CRD": {
			manifest: e(regular, `"@every 1ms"`),
			want:     []string{`a.yaml:6:3 schema spec.schedule: Invalid value: "@every 1ms": the duration of @every must be at least 1s`},
		},
		"unknown zone": {
			manifest: e("Europe/Berlin", "Europe/Atlantis"),
			want:     []string{`a.yaml:7:3 schema spec.timeZone: Invalid value: "string": unknown time zone Europe/Atlantis evaluating rule: must be a time zone of the IANA database`},
		},
		"unknown zone next to another error": {
			manifest: e("Europe/Berlin", "Europe/Atlantis\n  paused: never"),
			want: []string{
				`a.yaml:6:3 invalid-schedule spec.schedule: "30 2 * * *": unknown time zone "Europe/Atlantis"`,
				`a.yaml:8:3 schema spec.paused: Invalid value: "never": must be of type boolean`,
			},
		},
		"no schedule": {
			manifest: e("  schedule: "+regular+"\n", ""),
			want:     []string{`a.yaml:5:1 schema spec.schedule: Required value`},
		},
		"other version": {
			manifest: e("v1alpha1", "v1"),
			want:     []string{`a.yaml:1:1 api-version apiVersion: "apps.kruise.io/v1" is not supported for the kind AdvancedCronJob -> use apps.kruise.io/v1beta1`},
		},
		"template that is not supported": {
			manifest: e("jobTemplate", "imageListPullJobTemplate"),
			want:     []string{`a.yaml:9:5 schema spec.template.imageListPullJobTemplate: Invalid value: is not supported: use an ImagePullJob`},
		},
		"broadcast": {manifest: e("jobTemplate", "broadcastJobTemplate", "backoffLimit: 1", "parallelism: 10%")},
		"mistakes in a template of BroadcastJobs": {
			manifest: e("jobTemplate", "broadcastJobTemplate", "backoffLimit: 1", "paralelism: 1", "restartPolicy: Never", "restartPolicy: Always"),
			want: []string{
				`a.yaml:11:9 template spec.template.broadcastJobTemplate.spec.paralelism: unknown field -> did you mean "parallelism"?`,
				`a.yaml:17:13 template spec.template.broadcastJobTemplate.spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "OnFailure", "Never"`,
			},
		},
		"unknown fields of the Job and its pods": {
			manifest: e("backoffLimit", "backofLimit", "restartPolicy", "restartPolcy"),
			want: []string{
				`a.yaml:11:9 template spec.template.jobTemplate.spec.backofLimit: unknown field -> did you mean "backoffLimit"?`,
				`a.yaml:17:13 template spec.template.jobTemplate.spec.template.spec.restartPolcy: unknown field -> did you mean "restartPolicy"?`,
			},
		},
		"wrong type in the Job": {
			manifest: e("backoffLimit: 1", "backoffLimit: one"),
			want:     []string{`a.yaml:11:9 schema spec.template.jobTemplate.spec.backoffLimit: Invalid value: "one": must be an integer`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "findings", test.want, check(t, linter, test.manifest))
		})
	}
}

// TestMarkerOfAdvancedCronJob checks that a marker is compared with the pods of an AdvancedCronJob.
func TestMarkerOfAdvancedCronJob(t *testing.T) {
	linter := &lint.Linter{}
	want := []string{`a.yaml:11:5 container-not-found spec.probes[0].containerName: AdvancedCronJob report (b.yaml:1) has no container "worker" that probes can run in -> use the name of one of its containers, or of an init container with restartPolicy Always`}
	expect.Equal(t, "findings", want, check(t, linter, worker, edited(t, cronJob, "- name: worker", "- name: report")))
	if found := check(t, linter, worker, cronJob); len(found) > 0 {
		t.Errorf("findings: %q", found)
	}
}
