// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
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
	checkEach(t, map[string]linted{
		"valid":            {manifest: cronJob},
		"v1beta1":          {manifest: e("v1alpha1", "v1beta1")},
		"every":            {manifest: e(regular, `"@every 90m"`)},
		"29 February":      {manifest: e(regular, `"0 0 29 2 *"`)},
		"zone in schedule": {manifest: e(regular, `"TZ=Asia/Tokyo 30 2 * * *"`, "  timeZone: Europe/Berlin\n", "")},
		"reversed range": {
			manifest: e(regular, `"5-3 * * * *"`),
			want: []string{
				`a.yaml:6:3 invalid-schedule spec.schedule: "5-3 * * * *": it must have five fields, or be a descriptor such as @daily: beginning of range (5) beyond end of range (3): 5-3`,
			},
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
			want: []string{
				`a.yaml:7:3 schema spec.timeZone: Invalid value: "string": unknown time zone Europe/Atlantis evaluating rule: must be a time zone of the IANA database`,
			},
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
			want: []string{
				`a.yaml:1:1 api-version apiVersion: "apps.kruise.io/v1" is not supported for the kind AdvancedCronJob -> use apps.kruise.io/v1beta1`,
			},
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
	})
}

const daemonSet = `apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels:
      app: worker
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 1
      partition: 50%
  template:
    metadata:
      labels:
        app: worker
    spec:
      nodeSelector: {pool: main}
      containers:
      - name: worker
        image: busybox
`

func TestDaemonSets(t *testing.T) {
	e := func(edits ...string) string { return edited(t, daemonSet, edits...) }
	checkEach(t, map[string]linted{
		"valid":   {manifest: daemonSet},
		"v1beta1": {manifest: e("v1alpha1", "v1beta1")},
		"apps/v1": {manifest: e("apps.kruise.io/v1alpha1", "apps/v1")}, // DaemonSets of Kubernetes are not checked.
		"other version": {
			manifest: e("v1alpha1", "v1"),
			want:     []string{`a.yaml:1:1 api-version apiVersion: "apps.kruise.io/v1" is not supported for the kind DaemonSet -> use apps.kruise.io/v1beta1`},
		},
		"unknown field": {
			manifest: e("maxUnavailable", "maxUnavailabel"),
			want:     []string{`a.yaml:11:7 unknown-field spec.updateStrategy.rollingUpdate.maxUnavailabel: unknown field -> did you mean "maxUnavailable"?`},
		},
		"a rule of the CRD": {
			manifest: e("maxUnavailable: 1", "maxUnavailable: 0"),
			want: []string{
				`a.yaml:11:7 schema spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: must not be 0 if maxSurge is 0: no pod could be updated. Set one of them to 1 or more`,
			},
		},
		"selector": {
			manifest: e("labels:\n        app: worker", "labels:\n        app: other"),
			want: []string{
				`a.yaml:15:7 schema spec.template.metadata.labels: Invalid value: must contain the label "app: worker" of spec.selector.matchLabels`,
			},
		},
		"unknown field of the pods": {
			manifest: e("nodeSelector", "nodeSelektor"),
			want:     []string{`a.yaml:18:7 template spec.template.spec.nodeSelektor: unknown field -> did you mean "nodeSelector"?`},
		},
		"pulls before updates": {
			manifest: e(
				"  name: agent\n",
				"  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-parallelism: 10%\n    apps.kruise.io/image-predownload-min-updated-ready-pods: '2'\n",
			),
		},
		"invalid annotation about pulls before updates": {
			manifest: e("  name: agent\n", "  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-timeout-seconds: 5m\n"),
			want: []string{
				`a.yaml:6:5 invalid-predownload metadata.annotations[apps.kruise.io/image-predownload-timeout-seconds]: Invalid value: "5m": must be a number of seconds, 1 to 86400`,
			},
		},
		"negative percentage in an annotation": {
			manifest: e("  name: agent\n", "  name: agent\n  annotations: {apps.kruise.io/image-predownload-min-updated-ready-pods: '-5%'}\n"),
			want: []string{
				`a.yaml:5:17 invalid-predownload metadata.annotations[apps.kruise.io/image-predownload-min-updated-ready-pods]: Invalid value: "-5%": must be a number, at least 0, or a percentage of the pods, 0% to 100%`,
			},
		},
		"annotation of another group": {
			manifest: e(
				"apps.kruise.io/v1alpha1", "apps/v1", "  name: agent\n",
				"  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-parallelism: '0'\n",
			),
		},
		"hook": {
			manifest: e("  updateStrategy:", "  lifecycle: {inPlaceUpdate: {labelsHandler: {a: b}}}\n  updateStrategy:"),
			want: []string{
				`a.yaml:9:15 schema spec.lifecycle.inPlaceUpdate: Invalid value: is not supported: use preDelete, or a CloneSet, whose pods have this hook`,
			},
		},
	})
}

// TestMarkerOfKinds checks that a marker is compared with the pods of these kinds.
func TestMarkerOfKinds(t *testing.T) {
	linter := &rules.Linter{}
	for name, manifest := range map[string]string{"AdvancedCronJob report": cronJob, "DaemonSet agent": daemonSet} {
		want := []string{
			`a.yaml:11:5 container-not-found spec.probes[0].containerName: ` + name + ` (b.yaml:1) has no container "worker" that probes can run in -> use the name of one of its containers, or of an init container with restartPolicy Always`,
		}
		expect.Equal(t, name+": findings", want, check(t, linter, worker, edited(t, manifest, "- name: worker", "- name: report")))
		if found := check(t, linter, worker, manifest); len(found) > 0 {
			t.Errorf("%s: findings: %q", name, found)
		}
	}
}

const imagePullJob = `apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata:
  name: pull
spec:
  image: game:1
  parallelism: 10%
`

func TestImagePullJobs(t *testing.T) {
	e := func(edits ...string) string { return edited(t, imagePullJob, edits...) }
	checkEach(t, map[string]linted{
		"valid":   {manifest: imagePullJob},
		"v1beta1": {manifest: e("v1alpha1", "v1beta1")},
		"sandbox": {
			manifest: e("parallelism: 10%", "sandboxConfig: {}"),
			want: []string{
				"a.yaml:7:3 schema spec.sandboxConfig: Invalid value: is not supported: the sandbox of a pull is that of the kubelet, configure the runtime of the nodes",
			},
		},
		"unknown field": {
			manifest: e("parallelism", "paralelism"),
			want:     []string{"a.yaml:7:3 unknown-field spec.paralelism: unknown field -> did you mean \"parallelism\"?"},
		},
	})
}
