// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestCompare(t *testing.T) {
	e := func(text string, edits ...string) string { return edited(t, text, edits...) }
	other := func(edits ...string) string {
		return e(e(worker, "name: worker", "name: other", "app: worker", "tier: back"), edits...)
	}
	// agent is a marker for the container of a SidecarSet.
	agent := e(worker, "containerName: worker", "containerName: agent")
	sidecars := func(more string) string {
		return "apiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata: {name: agents}\nspec:\n" +
			"  selector: {matchLabels: {app: worker}}\n  containers: [{name: agent, image: agent}]\n" + more
	}
	own := e(deployment, "- name: worker", "- name: agent")
	const noCost = "      annotations:\n        controller.kubernetes.io/pod-deletion-cost: \"10\"\n"
	linter := &rules.Linter{}
	for name, test := range map[string]struct {
		manifests []string
		want      []string
	}{
		"marker, workload and Service": {manifests: []string{worker, deployment, service}},
		"mark in the selector of the workload": {
			manifests: []string{
				worker, e(
					deployment, "app: worker\n  template", "app: worker\n      busy: \"true\"\n  template", "app: worker\n    spec",
					"app: worker\n        busy: \"true\"\n    spec",
				),
			},
			want: []string{
				`a.yaml:20:9 mark-in-workload-selector spec.probes[0].markerPolicy[0].labels[busy]: "busy" is a key of the selector of Deployment worker (b.yaml:1), which loses the pod when the value changes -> set another label`,
			},
		},
		"workload in another namespace": {
			manifests: []string{worker, e(deployment, "name: worker", "name: worker\n  namespace: games")},
			want: []string{
				`a.yaml:6:3 no-matching-pods spec.selector: "app=worker" matches none of the pod templates in the manifests: none of them is in the namespace default -> correct the selector, or the labels of the pod template`,
			},
		},
		"default namespace": {manifests: []string{worker, e(deployment, "name: worker", "name: worker\n  namespace: default")}},
		"selector without pods": {
			manifests: []string{e(worker, "app: worker", "app: wrker\n      tier: back"), deployment},
			want: []string{
				`a.yaml:6:3 no-matching-pods spec.selector: "app=wrker,tier=back" matches none of the pod templates in the manifests: the pods of Deployment worker (b.yaml:1) have app=worker, no label tier -> correct the selector, or the labels of the pod template`,
			},
		},
		"selector of a label that a controller adds": {
			manifests: []string{e(worker, "app: worker", "statefulset.kubernetes.io/pod-name: worker-0"), deployment},
		},
		"selector of a mark of another marker": {manifests: []string{
			worker, e(
				worker, "name: worker", "name: follower", "app: worker", "busy: \"true\"", noCost, "", "busy: \"true\"\n    pod",
				"role: x\n    pod", "com/busy", "com/role",
			),
			deployment,
		}},
		"unknown container": {
			manifests: []string{e(worker, "containerName: worker", "containerName: main"), deployment},
			want: []string{
				`a.yaml:11:5 container-not-found spec.probes[0].containerName: Deployment worker (b.yaml:1) has no container "main" that probes can run in -> use the name of one of its containers, or of an init container with restartPolicy Always`,
			},
		},
		"init container": {
			manifests: []string{
				e(worker, "containerName: worker", "containerName: setup"), e(
					deployment, "      containers:", "      initContainers: [{name: setup}]\n      containers:",
				),
			},
			want: []string{
				`a.yaml:11:5 container-not-found spec.probes[0].containerName: Deployment worker (b.yaml:1) has no container "setup" that probes can run in -> use the name of one of its containers, or of an init container with restartPolicy Always`,
			},
		},
		"container of a SidecarSet":         {manifests: []string{agent, deployment, sidecars("")}},
		"container of a SidecarSet, before": {manifests: []string{sidecars("  injectionStrategy: {paused: true}\n"), deployment, agent}},
		"container of a SidecarSet and of the pod": {
			manifests: []string{agent, own, sidecars("")},
			want: []string{
				`c.yaml:1:1 sidecarset-not-accepted: a cluster refuses the pods of Deployment worker (b.yaml:1): the pod has a container "agent" ` +
					`of its own, as the set has: rename one of them, or exclude the pod from the selector of the set`,
			},
		},
		"container of a SidecarSet and of the pod, paused": {manifests: []string{agent, own, sidecars("  injectionStrategy: {paused: true}\n")}},
		"container of a SidecarSet and of the pod, ignored": {manifests: []string{
			agent, own, e(sidecars(""), "{name: agents}", "{name: agents, annotations: {seamark.dev/injection-failure-policy: Ignore}}"),
		}},
		"container of a SidecarSet and of some pods": {manifests: []string{
			agent, own, e(sidecars(""), "app: worker", "app: worker, statefulset.kubernetes.io/pod-name: x"),
		}},
		"container of a SidecarSet and of pods of some namespaces": {
			manifests: []string{agent, own, sidecars("  namespaceSelector: {matchLabels: {team: x}}\n")},
		},
		"container for labels of a controller": {manifests: []string{
			agent, deployment, e(sidecars(""), "{matchLabels: {app: worker}}",
				"{matchLabels: {statefulset.kubernetes.io/pod-name: worker-0}, matchExpressions: [{key: controller-revision-hash, operator: Exists}]}"),
		}},
		"container for labels of a namespace": {manifests: []string{agent, deployment, sidecars("  namespaceSelector: {matchLabels: {team: x}}\n")}},
		"container of a SidecarSet for another namespace": {
			manifests: []string{agent, deployment, sidecars("  namespace: other\n")},
			want: []string{
				`a.yaml:11:5 container-not-found spec.probes[0].containerName: Deployment worker (b.yaml:1) has no container "agent" that probes can run in -> ` +
					`use the name of one of its containers, or of an init container with restartPolicy Always`,
			},
		},
		"sidecar": {
			manifests: []string{
				e(worker, "containerName: worker", "containerName: proxy"), e(
					deployment, "      containers:", "      initContainers: [{name: proxy, restartPolicy: Always}]\n      containers:",
				),
			},
		},
		"container in one of two": {
			manifests: []string{
				e(worker, "containerName: worker", "containerName: main"), deployment, e(
					deployment, "name: worker", "name: second", "- name: worker", "- name: main",
				),
			},
		},
		"named port": {manifests: []string{e(worker, "exec:\n        command: [/bin/cat, /tmp/job]", "httpGet: {port: http}"), deployment}},
		"unknown port": {
			manifests: []string{e(worker, "exec:\n        command: [/bin/cat, /tmp/job]", "httpGet: {port: web}"), deployment},
			want: []string{
				`a.yaml:13:17 port-not-found spec.probes[0].probe.httpGet.port: container worker of Deployment worker (b.yaml:1) has no port "web" -> use the name of one of its ports, or a number`,
			},
		},
		"unknown port of TCP": {
			manifests: []string{e(worker, "exec:\n        command: [/bin/cat, /tmp/job]", "tcpSocket: {port: web}"), deployment},
			want: []string{
				`a.yaml:13:19 port-not-found spec.probes[0].probe.tcpSocket.port: container worker of Deployment worker (b.yaml:1) has no port "web" -> use the name of one of its ports, or a number`,
			},
		},
		"no startup probe": {
			manifests: []string{e(worker, "    podConditionType", "    startupPolicy: WaitForStarted\n    podConditionType"), deployment},
			want: []string{
				`a.yaml:23:5 no-startup-probe spec.probes[0].startupPolicy: container worker of Deployment worker (b.yaml:1) has no startup probe: it counts as started when it runs -> add a startupProbe to the container, or remove the field`,
			},
		},
		"startup probe": {
			manifests: []string{
				e(
					worker, "    podConditionType", "    startupPolicy: WaitForStarted\n    podConditionType",
				), e(deployment, "image: busybox", "image: busybox\n        startupProbe: {exec: {command: [/bin/true]}}"),
			},
		},
		"Pod and CronJob": {manifests: []string{
			worker, "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {app: worker}}\nspec: {containers: [{name: main}]}\n",
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {jobTemplate: {spec: {template: {metadata: {labels: {app: worker}}, spec: {containers: [{name: worker}]}}}}}\n",
		}},
		"ReplicationController": {
			manifests: []string{
				worker,
				"apiVersion: v1\nkind: ReplicationController\nmetadata: {name: x}\nspec: {selector: {busy: x}, template: {metadata: {labels: {app: worker, busy: x}}, spec: {containers: [{name: worker}]}}}\n",
			},
			want: []string{
				`a.yaml:20:9 mark-in-workload-selector spec.probes[0].markerPolicy[0].labels[busy]: "busy" is a key of the selector of ReplicationController x (b.yaml:1), which loses the pod when the value changes -> set another label`,
			},
		},
		"Service with a value that no probe sets": {
			manifests: []string{worker, deployment, e(service, `"true"`, "yes-it-is")},
			want: []string{
				`c.yaml:8:5 service-selector-value spec.selector[busy]: no probe sets busy=yes-it-is: PodProbeMarker worker (a.yaml:1) sets true -> select one of these values, or set this one in a markerPolicy`,
			},
		},
		"Service of other pods": {manifests: []string{worker, e(service, "app: worker", "app: other", `"true"`, `"false"`)}},
		"Service of unmarked pods": {manifests: []string{
			worker, deployment, e(deployment, "name: worker", "name: static", "app: worker\n    spec", "app: static\n        busy: never\n    spec"),
			e(service, "    app: worker\n", "", `"true"`, "never"),
		}},
		"shared marks, overlapping selectors": {
			manifests: []string{worker, other()},
			want: []string{
				`a.yaml:20:9 shared-mark spec.probes[0].markerPolicy[0].labels[busy]: the probe other#busy of PodProbeMarker other (b.yaml:1) sets the label busy too, and comes first -> set it in one of the probes only`,
				`a.yaml:22:9 shared-mark spec.probes[0].markerPolicy[0].annotations[controller.kubernetes.io/pod-deletion-cost]: the probe other#busy of PodProbeMarker other (b.yaml:1) sets the annotation controller.kubernetes.io/pod-deletion-cost too, and comes first -> set it in one of the probes only`,
				`a.yaml:23:5 shared-mark spec.probes[0].podConditionType: the probe other#busy of PodProbeMarker other (b.yaml:1) sets the condition example.com/busy too, and comes first -> set it in one of the probes only`,
			},
		},
		"no pod in both selectors": {manifests: []string{worker, other("tier: back", "app: other")}},
		"no template in both": {
			manifests: []string{worker, other(), deployment, e(deployment, "name: worker", "name: back", "app: worker\n    spec", "tier: back\n    spec")},
		},
		"markers in two namespaces": {manifests: []string{worker, other("name: other", "name: other\n  namespace: games")}},
		"shared marks, one template": {
			manifests: []string{
				worker, other(noCost, "", "com/busy", "com/other"), e(deployment, "app: worker\n    spec", "app: worker\n        tier: back\n    spec"),
			},
			want: []string{
				`a.yaml:20:9 shared-mark spec.probes[0].markerPolicy[0].labels[busy]: the probe other#busy of PodProbeMarker other (b.yaml:1) sets the label busy too, and comes first -> set it in one of the probes only`,
			},
		},
		"shared marks, other containers": {manifests: []string{
			worker, other("containerName: worker", "containerName: main"),
			e(deployment, "app: worker\n    spec", "app: worker\n        tier: back\n    spec"),
			e(deployment, "name: worker", "name: back", "app: worker\n    spec", "tier: back\n    spec", "- name: worker", "- name: main"),
		}},
		"shared marks in one marker": {
			manifests: []string{e(
				worker, "    podConditionType: example.com/busy",
				"  - name: second\n    containerName: worker\n    probe: {tcpSocket: {port: 80}, periodSeconds: 1, failureThreshold: 1}\n    markerPolicy: [{state: Failed, labels: {busy: x}}]",
			)},
			want: []string{
				`a.yaml:26:45 shared-mark spec.probes[1].markerPolicy[0].labels[busy]: the probe worker#busy of PodProbeMarker worker (a.yaml:1) sets the label busy too, and comes first -> set it in one of the probes only`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "findings", test.want, check(t, linter, test.manifests...))
		})
	}
}

func TestSelectorsOverlap(t *testing.T) {
	marker := func(name, expression string) string {
		return edited(t, worker, "name: worker", "name: "+name, "matchLabels:\n      app: worker", "matchExpressions: ["+expression+"]")
	}
	linter := &rules.Linter{}
	for name, test := range map[string]struct {
		a, b string
		want bool
	}{
		"same value":           {"{key: a, operator: In, values: [x]}", "{key: a, operator: In, values: [x, z]}", true},
		"other values":         {"{key: a, operator: In, values: [x]}", "{key: a, operator: In, values: [z]}", false},
		"excluded value":       {"{key: a, operator: In, values: [x]}", "{key: a, operator: NotIn, values: [x]}", false},
		"one of two excluded":  {"{key: a, operator: In, values: [x, z]}", "{key: a, operator: NotIn, values: [x]}", true},
		"present and absent":   {"{key: a, operator: Exists}", "{key: a, operator: DoesNotExist}", false},
		"value and absent":     {"{key: a, operator: In, values: [x]}", "{key: a, operator: DoesNotExist}", false},
		"excluded and absent":  {"{key: a, operator: NotIn, values: [x]}", "{key: a, operator: DoesNotExist}", true},
		"excluded and present": {"{key: a, operator: NotIn, values: [x]}", "{key: a, operator: Exists}", true},
		"different keys":       {"{key: a, operator: Exists}", "{key: b, operator: DoesNotExist}", true},
		"empty common remainder": {
			"{key: a, operator: In, values: [x, z]}, {key: a, operator: NotIn, values: [x]}", "{key: a, operator: NotIn, values: [z]}", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, manifests := range [][]string{{marker("first", test.a), marker("second", test.b)}, {marker("first", test.b), marker("second", test.a)}} {
				findings := check(t, linter, manifests...)
				if got := slices.ContainsFunc(findings, func(f string) bool { return len(f) > 0 }); got != test.want {
					t.Errorf("overlap %v, want %v: %q", got, test.want, findings)
				}
			}
		})
	}
}

func TestSidecarSets(t *testing.T) {
	const logs = `apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: logs
spec:
  selector:
    matchLabels: {app: game}
  containers:
  - name: agent
    image: agent
`
	rename := func(edits ...string) string {
		return edited(t, logs, append([]string{"name: logs", "name: metrics"}, edits...)...)
	}
	linter := &rules.Linter{}
	for name, test := range map[string]struct{ first, second, want string }{
		"other container": {logs, rename("name: agent", "name: exporter"), ""},
		"other pods":      {logs, rename("app: game", "app: shop"), ""},
		"in conflict": {
			logs, rename(),
			"b.yaml:9:5 sidecarset-not-accepted spec.containers[0].name: agent is the name of a container of SidecarSet logs, which can select the same pods",
		},
		"launch priority": {
			edited(t, logs, "image: agent", "image: agent\n    env: [{name: KRUISE_CONTAINER_PRIORITY}]"),
			rename("name: agent", "name: exporter"),
			"a.yaml:11:11 sidecarset-not-accepted spec.containers[0].env[0]: KRUISE_CONTAINER_PRIORITY has no effect: use an init container with restartPolicy Always and a startupProbe: the kubelet starts the containers of the pod after it",
		},
		"hot upgrade": {
			edited(t, logs, "image: agent", "image: agent\n    upgradeStrategy: {upgradeType: HotUpgrade}"),
			rename("name: agent", "name: exporter"),
			"a.yaml:11:23 schema spec.containers[0].upgradeStrategy.upgradeType: Invalid value: \"HotUpgrade\": must be ColdUpgrade: HotUpgrade is not supported, a native sidecar (an init container with restartPolicy Always) keeps the order of start and end",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			expect.Equal(t, "findings", want, check(t, linter, test.first, test.second))
		})
	}
}
