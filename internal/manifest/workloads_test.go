// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/test/expect"
)

// kruise returns the manifest of one of OpenKruise's workloads.
func kruise(version, kind, more string) string {
	return strings.Replace(workload(kind, more), "apps/v1", "apps.kruise.io/"+version, 1)
}

// job returns the manifest of a job with fields in its spec and in that of its pods.
func job(spec, pod string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {" + spec + "template: " + jobPod(pod) + "}}"
}

func jobPod(more string) string {
	return "{spec: {" + more + "containers: [{name: main, command: [run]}]}}"
}

func TestWorkloads(t *testing.T) {
	three := int32(3)
	cron := "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: \"0 0 * * *\", jobTemplate: {spec: {template: " + jobPod("restartPolicy: Never, ") + "}}}}"
	for name, test := range map[string]struct {
		text    string
		options manifest.Options
		want    []string
	}{
		"ReplicaSet":         {text: workload("ReplicaSet", "replicas: 2"), want: []string{"web-0", "web-1"}},
		"DaemonSet":          {text: workload("DaemonSet", ""), want: []string{"web-0"}},
		"DaemonSet is fixed": {text: workload("DaemonSet", ""), options: manifest.Options{Replicas: &three}, want: []string{"web-0"}},
		"Job":                {text: job("", "restartPolicy: Never, "), want: []string{"once-0"}},
		"parallel Job":       {text: job("parallelism: 3, completions: 2, ", "restartPolicy: OnFailure, "), want: []string{"once-0", "once-1"}},
		"CronJob":            {text: cron, want: []string{"nightly-0"}},
		"CloneSet": {
			text: kruise("v1alpha1", "CloneSet", "replicas: 2\n  scaleStrategy: {maxUnavailable: 1}"), want: []string{"web-f2fpn", "web-cpv4x"},
		},
		"Kruise StatefulSet": {text: kruise("v1beta1", "StatefulSet", "replicas: 1\n  ordinals: {start: 4}"), want: []string{"web-4"}},
		"Kruise StatefulSet, older version": {
			text: kruise("v1alpha1", "StatefulSet", "replicas: 2\n  reserveOrdinals: [0]"), want: []string{"web-1", "web-2"},
		},
		"Kruise DaemonSet": {text: kruise("v1alpha1", "DaemonSet", ""), want: []string{"web-0"}},
		"replicas overridden": {
			text: kruise("v1alpha1", "CloneSet", "replicas: 1"), options: manifest.Options{Replicas: &three},
			want: []string{"web-f2fpn", "web-cpv4x", "web-9cdhb"},
		},
		"reserved ordinals": {
			text: kruise(
				"v1beta1", "StatefulSet", "replicas: 3\n  ordinals: {start: 1}\n  reserveOrdinals: [2, \"4-6\"]",
			), want: []string{"web-1", "web-3", "web-7"},
		},
		"reserved, overridden": {
			text: kruise("v1beta1", "StatefulSet", "reserveOrdinals: [0, 2]"), options: manifest.Options{Replicas: &three},
			want: []string{"web-1", "web-3", "web-4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := read(t, test.options, test.text)
			expect.NoError(t, err)
			var got []string
			for _, p := range objects.Pods {
				got = append(got, p.Name)
			}
			expect.Equal(t, "pods", test.want, got)
		})
	}
}

func TestInvalidWorkloads(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		options manifest.Options
		want    string
	}{
		"negative parallelism": {text: job("parallelism: -1, ", "restartPolicy: Never, "), want: "Job once: spec.parallelism: Invalid value: -1"},
		"claim outside the run": {
			text: pod(
				"volumes: [{name: data, persistentVolumeClaim: {claimName: ../../x}}], ", "",
			), want: `spec.volumes[0].persistentVolumeClaim.claimName: Invalid value: "../../x"`,
		},
		"restart policy of a job": {text: job("", ""), want: `Job once: spec.template.spec.restartPolicy: Unsupported value: ""`},
		"field of a Kruise template": {
			text: strings.Replace(
				kruise("v1alpha1", "CloneSet", ""), "command:", "commnd:", 1,
			), want: `CloneSet web: spec.template.spec.containers[0].commnd: unknown field: did you mean "command"?`,
		},
		"version of a Kruise workload": {text: kruise("v2", "CloneSet", ""), want: `apiVersion: Unsupported value: "apps.kruise.io/v2"`},
		"selector of a CloneSet": {
			text: strings.Replace(
				kruise("v1alpha1", "CloneSet", ""), "labels: {app: web}", "labels: {app: other}", 1,
			), want: `must contain the label "app: web" of spec.selector`,
		},
		"value refused by the CRD": {
			text: kruise(
				"v1alpha1", "CloneSet", "updateStrategy: {type: Sometimes}",
			), want: `CloneSet web: spec.updateStrategy.type: Unsupported value: "Sometimes"`,
		},
		"bound of the CRD": {text: kruise("v1beta1", "StatefulSet", "replicas: -1"), want: "StatefulSet web: spec.replicas: Invalid value: -1"},
		"unknown field": {
			text: kruise("v1beta1", "StatefulSet", "reservedOrdinals: [1]"),
			want: `spec.reservedOrdinals: unknown field: did you mean "reserveOrdinals"?`,
		},
		"command of another container": {
			text: pod("", ""), options: manifest.Options{Commands: map[string]string{"other": "x"}},
			want: `--command: "other" is invalid: no pod has a container with this name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, test.options, test.text)
			expect.ErrorWith(t, "Read()", test.want, err)
		})
	}
}

func TestClaimsOfEachPod(t *testing.T) {
	for text, pods := range map[string][]string{
		workload("StatefulSet", claims):          {"web-0", "web-1"},
		kruise("v1beta1", "StatefulSet", claims): {"web-0", "web-1"},
		kruise("v1alpha1", "CloneSet", claims):   {"web-f2fpn", "web-cpv4x"},
	} {
		objects, err := read(t, manifest.Options{}, text)
		expect.NoError(t, err)
		for i, pod := range pods {
			want := "data-" + pod
			volumes := objects.Pods[i].Spec.Volumes
			if len(volumes) != 1 || volumes[0].Name != "data" || volumes[0].PersistentVolumeClaim.ClaimName != want {
				t.Errorf("volumes are %+v, want claim %s", volumes, want)
			}
		}
		if unsupported := objects.Unsupported(); len(unsupported) > 0 {
			t.Errorf("unsupported: %v", unsupported)
		}
	}
}

const claims = "replicas: 2\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]"

func TestClaimReplacesVolumeOfTheTemplate(t *testing.T) {
	text := strings.Replace(workload("StatefulSet", claims), "containers:", "volumes: [{name: data, emptyDir: {}}]\n      containers:", 1)
	objects, err := read(t, manifest.Options{}, text)
	expect.NoError(t, err)
	volumes := objects.Pods[0].Spec.Volumes
	if len(volumes) != 1 || volumes[0].PersistentVolumeClaim == nil || volumes[0].EmptyDir != nil {
		t.Errorf("volumes are %+v, want only the claim", volumes)
	}
}

func TestCommandOfTheOptions(t *testing.T) {
	text := "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: x, args: [arg]}]}}"
	objects, err := read(t, manifest.Options{Commands: map[string]string{"main": "sleep 1; echo $HOME"}}, text)
	expect.NoError(t, err)
	c := objects.Pods[0].Spec.Containers[0]
	if diff := cmp.Diff([]string{"sh", "-c", "sleep 1; echo $$HOME"}, c.Command); diff != "" || c.Args != nil {
		t.Errorf("args %v, command (-want +got):\n%s", c.Args, diff)
	}
}

func TestLabelsOfPods(t *testing.T) {
	for kind, test := range map[string]struct {
		text string
		want map[string]string
	}{
		"Job":      {job("", "restartPolicy: Never, "), map[string]string{"batch.kubernetes.io/job-name": "once", "job-name": "once"}},
		"CloneSet": {kruise("v1alpha1", "CloneSet", ""), map[string]string{"app": "web", "apps.kruise.io/cloneset-instance-id": "f2fpn"}},
		"StatefulSet": {kruise("v1beta1", "StatefulSet", "ordinals: {start: 7}"), map[string]string{
			"app": "web", "statefulset.kubernetes.io/pod-name": "web-7", "apps.kubernetes.io/pod-index": "7",
		}},
	} {
		objects, err := read(t, manifest.Options{}, test.text)
		expect.NoError(t, err)
		expect.Equal(t, "labels of a pod of a "+kind, test.want, objects.Pods[0].Labels)
	}
}
