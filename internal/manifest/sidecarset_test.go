// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/test/expect"
)

// sidecars returns the manifest of a SidecarSet for the pods app=web, with more fields.
func sidecars(name, more string) string {
	return "\n---\napiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata: {name: " + name + "}\nspec:\n" +
		"  selector: {matchLabels: {app: web}}\n" + more
}

func TestSidecarSets(t *testing.T) {
	const agent = "  containers: [{name: agent, command: [run]}]\n"
	for name, test := range map[string]struct {
		text    string
		options manifest.Options
		// want has the containers of each pod, and warnings.
		want []string
		err  string
	}{
		"containers": {
			text: workload("Deployment", "replicas: 2") + sidecars("b", agent) +
				sidecars("a", "  initContainers: [{name: native, command: [run], restartPolicy: Always}]\n"),
			want: []string{"web-0: native agent main", "web-1: native agent main"},
		},
		"behind those of the pod": {
			text: workload("Deployment", "") + sidecars("a", "  containers: [{name: agent, command: [run], podInjectPolicy: AfterAppContainer}]\n"),
			want: []string{"web-0: main agent"},
		},
		"command of the options": {
			text:    workload("Deployment", "") + sidecars("a", "  containers: [{name: agent, image: x}]\n"),
			options: manifest.Options{Commands: map[string]string{"agent": "run"}}, want: []string{"web-0: agent main"},
		},
		"another namespace": {
			text: workload("Deployment", "") + sidecars("a", agent+"  namespace: other\n"),
			want: []string{"web-0: main", "a.yaml:18:3: SidecarSet a: the set selects no pods"},
		},
		"selected namespace": {
			text: workload("Deployment", "") + sidecars("a", agent+"  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: games}}\n"),
			want: []string{"web-0: agent main"},
		},
		"labels of a namespace": {
			text: workload("Deployment", "") + sidecars("a", agent+"  namespaceSelector: {matchLabels: {team: x}}\n"),
			want: []string{
				"web-0: main", "a.yaml:20:3: SidecarSet a: a local run knows the name of a namespace (kubernetes.io/metadata.name), and no other label of it",
				"a.yaml:18:3: SidecarSet a: the set selects no pods",
			},
		},
		"paused": {
			text: workload("Deployment", "") + sidecars("a", agent+"  injectionStrategy: {paused: true}\n"),
			want: []string{"web-0: main", "a.yaml:20:23: SidecarSet a: the injection is paused: no pod gets the containers"},
		},
		"a Job": {
			text: job("", "restartPolicy: Never, ") + strings.Replace(sidecars("a", agent), "app: web", "job-name: once", 1),
			want: []string{
				"once-0: agent main",
				"a.yaml:3:1: SidecarSet a: the pod has restartPolicy Never, and ends only when its containers do: use init containers with restartPolicy Always",
			},
		},
		"not accepted for a pod, ignored": {
			text: workload("Deployment", "") + strings.Replace(sidecars("a", "  containers: [{name: main, command: [run]}]\n"), "{name: a}",
				"{name: a, annotations: {seamark.dev/injection-failure-policy: Ignore}}", 1),
			want: []string{
				"web-0: main", "a.yaml:14:1: SidecarSet a: pod web-0 does not get the containers: the pod has a container \"main\" of its own, " +
					"as the set has: rename one of them, or exclude the pod from the selector of the set",
			},
		},
		"not accepted for a pod": {
			text: workload("Deployment", "") + sidecars("a", "  containers: [{name: main, command: [run]}]\n"),
			err:  `a.yaml:14:1: SidecarSet a: a cluster refuses pod web-0: the pod has a container "main" of its own`,
		},
		"no command": {
			text: workload("Deployment", "") + sidecars("a", "  containers: [{name: agent, image: x}]\n"),
			err:  "a.yaml:19:16: SidecarSet a: spec.containers[0].command: Required value: images are not pulled",
		},
		"missing ConfigMap": {
			text: workload("Deployment", "") + sidecars("a", "  containers: [{name: agent, command: [run], envFrom: [{configMapRef: {name: x}}]}]\n"),
			err:  `spec.containers[0].envFrom[0].configMapRef.name: Invalid value: "x": no ConfigMap with this name`,
		},
		"unknown field": {
			text: sidecars("a", "  containers: [{name: agent, command: [run], comand: x}]\n"),
			err:  `a.yaml:8:46: SidecarSet a: spec.containers[0].comand: unknown field: did you mean "command"?`,
		},
		"two sets with one container": {
			text: workload("Deployment", "") + sidecars("a", agent) + sidecars("b", agent),
			err:  `a.yaml:27:17: SidecarSet b: spec.containers[0].name: `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := read(t, test.options, test.text)
			if test.err != "" {
				expect.ErrorWith(t, "Read()", test.err, err)
				return
			}
			expect.NoError(t, err)
			var got []string
			for _, p := range objects.Pods {
				var names []string
				for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
					names = append(names, c.Name)
				}
				got = append(got, p.Name+": "+strings.Join(names, " "))
			}
			expect.Equal(t, "containers and warnings", test.want, append(got, objects.Warnings()...))
		})
	}
}

// The containers may mount volumes of the set and of the pod, and get variables of the pod's containers.
func TestSidecarSetsShare(t *testing.T) {
	text := strings.Replace(workload("Deployment", "replicas: 2"), "command: [run]}]",
		"command: [run], env: [{name: A, value: a}], volumeMounts: [{name: data, mountPath: /data}]}]\n      volumes: [{name: data, emptyDir: {}}]", 1)
	objects, err := read(t, manifest.Options{}, text+sidecars("a", `
  containers:
  - name: agent
    command: [run]
    shareVolumePolicy: {type: enabled}
    transferEnv: [{sourceContainerName: main, envName: A}]
    volumeMounts: [{name: own, mountPath: /own}]
  volumes: [{name: own, emptyDir: {}}]
`))
	expect.NoError(t, err)
	if unsupported := objects.Unsupported(); len(unsupported) > 0 {
		t.Errorf("unsupported: %v", unsupported)
	}
	for _, p := range objects.Pods {
		agent := p.Spec.Containers[0]
		var got []string
		for _, mount := range agent.VolumeMounts {
			got = append(got, fmt.Sprintf("%s %s", mount.MountPath, objects.VolumePlace(p, mount.Name)))
		}
		got = append(got, objects.ContainerPlace(p, "main", "command[0]"), objects.ContainerPlace(p, "agent", "command[0]"))
		if diff := cmp.Diff([]string{"/own a.yaml:27:13", "/data a.yaml:12:17", "a.yaml:11:43: Deployment web", "a.yaml:23:15: SidecarSet a"}, got); diff != "" {
			t.Errorf("mounts of %s and programs with their places (-want +got):\n%s", p.Name, diff)
		}
		if !slices.Contains(agent.Env, corev1.EnvVar{Name: "A", Value: "a"}) {
			t.Errorf("variables %v, want A of the other container", agent.Env)
		}
	}
}
