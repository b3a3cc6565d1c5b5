// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/test/expect"
)

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
	linter := &lint.Linter{}
	for name, test := range map[string]struct {
		manifest string
		want     []string
	}{
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
			want:     []string{`a.yaml:11:7 schema spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: must not be 0 if maxSurge is 0: no pod could be updated. Set one of them to 1 or more`},
		},
		"selector": {
			manifest: e("labels:\n        app: worker", "labels:\n        app: other"),
			want:     []string{`a.yaml:15:7 schema spec.template.metadata.labels: Invalid value: must contain the label "app: worker" of spec.selector.matchLabels`},
		},
		"unknown field of the pods": {
			manifest: e("nodeSelector", "nodeSelektor"),
			want:     []string{`a.yaml:18:7 template spec.template.spec.nodeSelektor: unknown field -> did you mean "nodeSelector"?`},
		},
		"pulls before updates": {
			manifest: e("  name: agent\n", "  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-parallelism: 10%\n    apps.kruise.io/image-predownload-min-updated-ready-pods: '2'\n"),
		},
		"invalid annotation about pulls before updates": {
			manifest: e("  name: agent\n", "  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-timeout-seconds: 5m\n"),
			want:     []string{`a.yaml:6:5 invalid-predownload metadata.annotations[apps.kruise.io/image-predownload-timeout-seconds]: Invalid value: "5m": must be a number of seconds, 1 to 86400`},
		},
		"negative percentage in an annotation": {
			manifest: e("  name: agent\n", "  name: agent\n  annotations: {apps.kruise.io/image-predownload-min-updated-ready-pods: '-5%'}\n"),
			want:     []string{`a.yaml:5:17 invalid-predownload metadata.annotations[apps.kruise.io/image-predownload-min-updated-ready-pods]: Invalid value: "-5%": must be a number, at least 0, or a percentage of the pods, 0% to 100%`},
		},
		"annotation of another group": {
			manifest: e("apps.kruise.io/v1alpha1", "apps/v1", "  name: agent\n", "  name: agent\n  annotations:\n    apps.kruise.io/image-predownload-parallelism: '0'\n"),
		},
		"hook": {
			manifest: e("  updateStrategy:", "  lifecycle: {inPlaceUpdate: {labelsHandler: {a: b}}}\n  updateStrategy:"),
			want:     []string{`a.yaml:9:15 schema spec.lifecycle.inPlaceUpdate: Invalid value: is not supported: use preDelete, or a CloneSet, whose pods have this hook`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "findings", test.want, check(t, linter, test.manifest))
		})
	}
}

// TestMarkerOfDaemonSet checks that a marker is compared with the pods of a DaemonSet.
func TestMarkerOfDaemonSet(t *testing.T) {
	linter := &lint.Linter{}
	want := []string{`a.yaml:11:5 container-not-found spec.probes[0].containerName: DaemonSet agent (b.yaml:1) has no container "worker" that probes can run in -> use the name of one of its containers, or of an init container with restartPolicy Always`}
	expect.Equal(t, "findings", want, check(t, linter, worker, edited(t, daemonSet, "- name: worker", "- name: report")))
	if found := check(t, linter, worker, daemonSet); len(found) > 0 {
		t.Errorf("findings: %q", found)
	}
}
