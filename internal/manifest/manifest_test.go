// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

func read(t *testing.T, options manifest.Options, texts ...string) (manifest.Objects, error) {
	t.Helper()
	var files []document.File
	for i, text := range texts {
		files = append(files, document.File{Name: string(rune('a'+i)) + ".yaml", Content: []byte(text)})
	}
	return manifest.Read(t.Context(), files, options)
}

// pod returns the manifest of a pod with additional fields in its spec and container.
func pod(spec, container string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {" + spec +
		"containers: [{name: main, command: [run], ports: [{name: http, containerPort: 80}], " + container + "}]}}"
}

const marker = `
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: idle}
spec:
  selector: {matchLabels: {app: web}}
  probes:
  - {name: idle, containerName: main, podConditionType: game.io/idle, probe: {exec: {command: [idle]}}}
`

func workload(kind, more string) string {
	return `
apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: web, namespace: games}
spec:
  selector: {matchLabels: {app: web}}
  ` + more + `
  template:
    metadata: {labels: {app: web}, annotations: {note: x}}
    spec:
      containers: [{name: main, command: [run]}]
`
}

func TestPods(t *testing.T) {
	three := int32(3)
	for name, test := range map[string]struct {
		options manifest.Options
		texts   []string
		want    []string
	}{
		"pod":                         {texts: []string{pod("", "")}, want: []string{"default/web"}},
		"one replica by default":      {texts: []string{workload("Deployment", "")}, want: []string{"games/web-0"}},
		"replicas":                    {texts: []string{workload("StatefulSet", "replicas: 2")}, want: []string{"games/web-0", "games/web-1"}},
		"ordinals":                    {texts: []string{workload("StatefulSet", "ordinals: {start: 5}")}, want: []string{"games/web-5"}},
		"zero replicas":               {texts: []string{workload("Deployment", "replicas: 0"), pod("", "")}, want: []string{"default/web"}},
		"replicas overridden":         {options: manifest.Options{Replicas: &three}, texts: []string{workload("Deployment", "replicas: 1")}, want: []string{"games/web-0", "games/web-1", "games/web-2"}},
		"several documents":           {texts: []string{"# nothing\n---\n" + workload("Deployment", "") + "---\n---\n" + pod("", "") + "\n---\n"}, want: []string{"games/web-0", "default/web"}},
		"list":                        {texts: []string{"{apiVersion: v1, kind: List, items: [" + pod("", "") + "]}"}, want: []string{"default/web"}},
		"JSON":                        {texts: []string{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"main","command":["run"]}]}}`}, want: []string{"default/web"}},
		"reference to later document": {texts: []string{pod("", "envFrom: [{configMapRef: {name: settings}}]"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"}, want: []string{"default/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := read(t, test.options, test.texts...)
			expect.NoError(t, err)
			var got []string
			for _, p := range objects.Pods {
				got = append(got, p.Namespace+"/"+p.Name)
			}
			expect.Equal(t, "pods", test.want, got)
		})
	}
}

func TestDefaults(t *testing.T) {
	objects, err := read(t, manifest.Options{}, workload("StatefulSet", "")+"---"+marker+
		"---\n{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==}, stringData: {b: b}}")
	expect.NoError(t, err)
	p := objects.Pods[0]
	if p.Spec.RestartPolicy != "Always" || *p.Spec.TerminationGracePeriodSeconds != 30 || p.Spec.ServiceAccountName != "default" {
		t.Errorf("defaults are missing: %+v", p.Spec)
	}
	want := map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"}
	expect.Equal(t, "labels", want, p.Labels)
	if m := objects.Markers; len(m) != 1 || m[0].Namespace != "default" {
		t.Errorf("markers %v, want one in the default namespace", m)
	}
	for _, s := range objects.Secrets {
		expect.Equal(t, "secret", map[string][]byte{"a": []byte("a"), "b": []byte("b")}, s.Data)
	}
}

func probe(kind, more string) string { return pod("", kind+": {exec: {command: [x]}, "+more+"}") }

func handler(more string) string { return pod("", "readinessProbe: {"+more+"}") }

func TestInvalidManifests(t *testing.T) {
	const main = ": Pod web: spec.containers[0]."
	for name, test := range map[string]struct{ text, want string }{
		"lists inside each other": {
			strings.Repeat("{apiVersion: v1, kind: List, items: [", 9) + pod("", "") + strings.Repeat("]}", 9), "items: more than 8 lists inside each other",
		},
		"invalid YAML":                   {"a: [", "a.yaml:1:1: invalid YAML"},
		"line of the file":               {"---\n# comment\na: 1\n---\nb:\n  c: 1\n  c: 2", "a.yaml:7:1: invalid YAML: line 7"},
		"unknown field, similar":         {handler("periodSecond: 1"), `periodSecond: unknown field: did you mean "periodSeconds"?`},
		"field on the wrong level":       {strings.Replace(workload("Deployment", ""), "spec:", "replicas: 3\nspec:", 1), "a.yaml:5:1: Deployment web: replicas: unknown field: it belongs to spec"},
		"field in a list":                {"apiVersion: v1\nkind: List\nitems:\n- " + strings.Replace(pod("", ""), "spec:", "containers: [], spec:", 1), "a.yaml:4:54: Pod web: containers: unknown field: it belongs to spec"},
		"field of a Kruise object":       {strings.Replace(kruise("v1alpha1", "CloneSet", ""), "spec:", "replicas: 3\nspec:", 1), "a.yaml:5:1: CloneSet web: replicas: unknown field: it belongs to spec"},
		"field of a Kruise template":     {strings.Replace(kruise("v1alpha1", "CloneSet", ""), "template:", "template:\n    image: x", 1), "a.yaml:9:5: CloneSet web: spec.template.image: unknown field: it belongs to spec.template.spec.containers[] or spec.template.spec.initContainers[]"},
		"misspelled kind":                {strings.Replace(workload("Deploymnet", ""), "\n", "", 1), `a.yaml:2:1: Deploymnet web: kind: "Deploymnet" is not a kind of apps/v1: did you mean "Deployment"?`},
		"misspelled kind of the group":   {kruise("v1alpha1", "CloneSte", ""), `kind: "CloneSte" is not a kind of apps.kruise.io: did you mean "CloneSet"?`},
		"unknown marker field, similar":  {strings.Replace(marker, "podConditionType", "podCondition", 1), `did you mean "podConditionType"?`},
		"duplicate key":                  {"a: 1\na: 2", "a.yaml:2:1: invalid YAML"},
		"not an object":                  {"just: text", "a.yaml:1:1: not a Kubernetes object"},
		"no version":                     {"{kind: Pod, metadata: {name: web}}", "a.yaml:1:1: Pod web: apiVersion: Required value"},
		"wrong version":                  {"{apiVersion: v2, kind: Pod, metadata: {name: web}}", `a.yaml:1:2: Pod web: apiVersion: Unsupported value: "v2": supported values: "v1"`},
		"wrong group":                    {"{apiVersion: v1, kind: Deployment, metadata: {name: web}}", `apiVersion: Unsupported value: "v1": supported values: "apps/v1"`},
		"version of one group":           {"{apiVersion: apps.kruise.io/v1beta2, kind: StatefulSet, metadata: {name: w}}", `values: "apps.kruise.io/v1beta1"`},
		"removed group":                  {"{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: web}}", `apiVersion: Unsupported value: "extensions/v1beta1": supported values: "apps/v1"`},
		"marker version":                 {strings.Replace(marker, "v1alpha1", "v1", 1), `apiVersion: Unsupported value: "apps.kruise.io/v1": supported values: "apps.kruise.io/v1alpha1"`},
		"second document":                {pod("", "") + "\n---\n" + handler("periodSecond: 1"), `a.yaml:3:160: Pod web: spec.containers[0].readinessProbe.periodSecond: unknown field`},
		"wrong type":                     {handler("periodSeconds: often"), "a.yaml:1:59: Pod web: spec.containers.readinessProbe.periodSeconds: must be an integer, not string: write a number without quotes"},
		"fraction":                       {handler("periodSeconds: 2.5"), "a.yaml:1:59: Pod web: spec.containers.readinessProbe.periodSeconds: must be an integer, not number 2.5"},
		"command that is no list":        {handler("exec: {command: cat x}"), `a.yaml:1:59: Pod web: spec.containers.readinessProbe.exec.command: must be a list, not string, such as ["cat", "/tmp/x"]`},
		"duplicate name":                 {pod("", "") + "\n---\n" + pod("", ""), `a.yaml:3:40: Pod web: metadata.name: Duplicate value: "web": already used by a.yaml:1:1: Pod web`},
		"no name":                        {"{apiVersion: v1, kind: Pod, metadata: {generateName: x-}, spec: {containers: [{name: a, command: [b]}]}}", "metadata.name: Required value: a local run does not generate names"},
		"no containers":                  {"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {}}", "spec.containers: Required value"},
		"no command":                     {"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: x}]}}", main + "command: Required value: images are not pulled: set the program to run"},
		"duplicate container":            {pod("initContainers: [{name: main, command: [x]}], ", ""), main + `name: Duplicate value: "main"`},
		"restartPolicy":                  {pod("restartPolicy: Sometimes, ", ""), `spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		"restartPolicy of a Deployment":  {strings.Replace(workload("Deployment", ""), "containers:", "restartPolicy: Never\n      containers:", 1), `spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		"selector":                       {strings.Replace(workload("Deployment", ""), "labels: {app: web}", "labels: {app: other}", 1), "must match spec.selector: app=web"},
		"empty selector":                 {strings.Replace(workload("Deployment", ""), "matchLabels: {app: web}", "", 1), "Deployment web: spec.selector: Required value: must match the labels of the template"},
		"unknown operator":               {strings.Replace(workload("Deployment", ""), "matchLabels: {app: web}", "matchExpressions: [{key: app, operator: Inn}]", 1), `spec.selector.matchExpressions[0].operator: Unsupported value: "Inn": supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"no values":                      {strings.Replace(workload("Deployment", ""), "matchLabels: {app: web}", "matchExpressions: [{key: app, operator: In}]", 1), "spec.selector.matchExpressions[0].values: Required value"},
		"invalid selector value":         {strings.Replace(workload("Deployment", ""), "matchLabels: {app: web}", "matchLabels: {app: a b}", 1), `spec.selector.matchLabels: Invalid value: "a b"`},
		"invalid template label":         {strings.Replace(workload("Deployment", ""), "labels: {app: web}", "labels: {app: web, a b: c}", 1), `spec.template.metadata.labels: Invalid value: "a b"`},
		"invalid template annotation":    {strings.Replace(workload("Deployment", ""), "note: x", "a note: x", 1), `spec.template.metadata.annotations: Invalid value: "a note"`},
		"negative replicas":              {workload("Deployment", "replicas: -1"), "spec.replicas: Invalid value: -1: must be between 0 and 10000"},
		"too many replicas":              {workload("StatefulSet", "replicas: 2000000000"), "spec.replicas: Invalid value: 2000000000: must be between 0 and 10000"},
		"no command in a template":       {strings.Replace(workload("Deployment", "replicas: 3"), "command: [run]", "image: x", 1), "a.yaml:11:20: Deployment web: spec.template.spec.containers[0].command: Required value"},
		"negative grace period":          {pod("terminationGracePeriodSeconds: -1, ", ""), "spec.terminationGracePeriodSeconds: Invalid value: -1: must be 0 or more"},
		"no handler":                     {pod("", "livenessProbe: {periodSeconds: 1}"), main + "livenessProbe: Required value: must have exactly one of exec, httpGet, tcpSocket and grpc"},
		"two handlers":                   {probe("livenessProbe", "tcpSocket: {port: 1}"), main + "livenessProbe: Forbidden: must have exactly one of"},
		"liveness successThreshold":      {probe("livenessProbe", "successThreshold: 2"), main + "livenessProbe.successThreshold: Invalid value: 2: must be 1"},
		"startup successThreshold":       {probe("startupProbe", "successThreshold: 2"), main + "startupProbe.successThreshold: Invalid value: 2: must be 1"},
		"readiness grace period":         {probe("readinessProbe", "terminationGracePeriodSeconds: 5"), main + "readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readiness probes"},
		"liveness grace period":          {probe("livenessProbe", "terminationGracePeriodSeconds: 0"), main + "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be 1 or more"},
		"negative period":                {probe("livenessProbe", "periodSeconds: -1"), main + "livenessProbe.periodSeconds: Invalid value: -1: must be 0 or more"},
		"no probe command":               {handler("exec: {}"), main + "readinessProbe.exec.command: Required value"},
		"port number":                    {handler("tcpSocket: {port: 70000}"), main + "readinessProbe.tcpSocket.port: Invalid value: 70000"},
		"port name":                      {handler("httpGet: {port: https}"), main + `readinessProbe: Invalid value: "https": the container has no port with this name`},
		"grpc port":                      {handler("grpc: {port: 0}"), main + "readinessProbe.grpc.port: Invalid value: 0"},
		"scheme":                         {handler("httpGet: {port: 80, scheme: FTP}"), `scheme: Unsupported value: "FTP"`},
		"header":                         {handler(`httpGet: {port: 80, httpHeaders: [{name: "a b", value: x}]}`), `httpHeaders[0].name: Invalid value: "a b"`},
		"probe on init container":        {pod("initContainers: [{name: i, command: [x], livenessProbe: {exec: {command: [x]}}}], ", ""), "spec.initContainers[0].livenessProbe: Forbidden: may only be set on an init container with restartPolicy Always"},
		"container port":                 {pod("", `args: [x]}, {name: b, command: [x], ports: [{containerPort: 0}]`), "spec.containers[1].ports[0].containerPort: Invalid value: 0"},
		"value and valueFrom":            {pod("", "env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), main + "env[0].valueFrom: Forbidden: must not be set together with value"},
		"fieldRef":                       {pod("", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.phase}}}]"), main + `env[0].valueFrom.fieldRef.fieldPath: Invalid value: "status.phase": must be one of`},
		"missing ConfigMap":              {pod("", "env: [{name: A, valueFrom: {configMapKeyRef: {name: none, key: k}}}]"), main + `env[0].valueFrom.configMapKeyRef.name: Invalid value: "none": no ConfigMap with this name in the given files`},
		"binary key in a variable":       {pod("", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]") + "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, binaryData: {k: YQ==}}", main + `env[0].valueFrom.configMapKeyRef.key: Invalid value: "k": the ConfigMap has no such key`},
		"missing key of Secret":          {pod("", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]") + "\n---\n{apiVersion: v1, kind: Secret, metadata: {name: s}}", main + `env[0].valueFrom.secretKeyRef.key: Invalid value: "k": the Secret has no such key`},
		"unknown volume":                 {pod("", "volumeMounts: [{name: v, mountPath: /v}]"), main + `volumeMounts[0].name: Not found: "v"`},
		"missing ConfigMap of volume":    {pod("volumes: [{name: v, configMap: {name: none}}], ", ""), `spec.volumes[0].configMap.name: Invalid value: "none"`},
		"path outside of volume":         {pod("volumes: [{name: v, configMap: {name: m, items: [{key: k, path: ../x}]}}], ", "") + "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: v}}", `spec.volumes[0].configMap.items[0].path: Invalid value: "../x"`},
		"hook without handler":           {pod("", "lifecycle: {preStop: {}}"), main + "lifecycle.preStop: Invalid value: \"\": must have exactly one of exec, httpGet and sleep"},
		"sleep longer than grace period": {pod("", "lifecycle: {preStop: {sleep: {seconds: 31}}}"), main + "lifecycle.preStop.sleep.seconds: Invalid value: 31"},
		"readiness gate":                 {pod("readinessGates: [{conditionType: a b}], ", ""), `spec.readinessGates[0].conditionType: Invalid value: "a b"`},
		"unknown field of marker":        {strings.Replace(marker, "containerName", "container", 1), "a.yaml:8:18: PodProbeMarker idle: spec.probes[0].container: unknown field"},
		"marker without selector":        {strings.Replace(marker, "selector: {matchLabels: {app: web}}", "", 1), "PodProbeMarker idle: spec.selector: Required value"},
		"native condition type":          {strings.Replace(marker, "game.io/idle", "Ready", 1), "must not be a condition type that Kubernetes sets"},
		"marker with two handlers":       {strings.Replace(marker, "exec: {command: [idle]}", "exec: {command: [idle]}, grpc: {port: 1}", 1), "must have exactly one of exec, httpGet, tcpSocket and grpc"},
		"duplicate probe name":           {marker + "  - {name: idle, containerName: main, podConditionType: game.io/x, probe: {exec: {command: [x]}}}", "spec.probes[1]: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, manifest.Options{}, test.text)
			expect.ErrorWith(t, "Read()", test.want, err)
		})
	}
}

func TestReadReturnsAllErrors(t *testing.T) {
	_, err := read(t, manifest.Options{}, probe("livenessProbe", "successThreshold: 2, periodSeconds: -1"), "x")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Fatalf("got %v, want three errors", err)
	}
	var documentErr *manifest.DocumentError
	if !errors.As(err, &documentErr) || documentErr.Input == "" || documentErr.Document != 1 {
		t.Errorf("got %+v, want the location of the error", documentErr)
	}
}

// TestOrderOfErrors has unknown fields that a schema finds, and others that only a decoder finds.
func TestOrderOfErrors(t *testing.T) {
	set := strings.NewReplacer("apps/v1", "apps.kruise.io/v1alpha1", "run]", "run], commnd: []").Replace(workload("CloneSet", "replica: 2"))
	injector := "\n---\napiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata: {name: web}\nspec:\n  selector: {}\n  containers:\n" +
		"  - {name: a, image: a, commnd: []}\n  updateStrateg: {}\n"
	_, err := read(t, manifest.Options{Commands: map[string]string{"none": "x"}}, workload("Deployment", "templat: 1")+"  replica: 2\n", set+injector)
	var got []string
	for line := range strings.Lines(err.Error()) {
		_, place, _ := strings.Cut(line, ".yaml:")
		got = append(got, strings.SplitN(place, ": ", 4)[0])
	}
	if diff := cmp.Diff([]string{"7:3", "12:3", "7:3", "11:49", "20:25", "21:3", ""}, got); diff != "" {
		t.Errorf("places (-want +got):\n%s\n%v", diff, err)
	}
}

func TestHarmless(t *testing.T) {
	for path, want := range map[string]bool{
		"spec.containers[0].resources": true, "spec.affinity": true, "spec.hostPID": false, "": false,
		"spec.updateStrategy": true, "spec.scaleStrategy": true, "spec.podManagementPolicy": true,
		"spec.template.spec.containers[0].livenessProbe.httpGet.host": false,
	} {
		if got := (manifest.Unsupported{Path: path}).Harmless(); got != want {
			t.Errorf("%q is harmless: %t, want %t", path, got, want)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {text: pod("volumes: [{name: v, emptyDir: {}}], ", `image: x, imagePullPolicy: Always, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`)},
		"unsupported kind": {
			text: pod("", "") + "\n---\n{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 1}]}}",
			want: []string{"Service web"},
		},
		"kinds without pods here": {
			text: kruise("v1alpha1", "BroadcastJob", "") + "---" + kruise("v1alpha1", "WorkloadSpread", ""),
			want: []string{
				"BroadcastJob web: not in a local run: nothing creates its pods",
				`WorkloadSpread web: Seamark does not serve "WorkloadSpread", which is a kind of OpenKruise: ` +
					"nothing acts on the object unless OpenKruise runs, too",
			},
		},
		"same kind in another group": {
			text: "{apiVersion: apps.example.com/v1, kind: StatefulSet, metadata: {name: web}}",
			want: []string{"StatefulSet web"},
		},
		"fields of a pod": {
			text: pod("hostNetwork: true, volumes: [{name: v, emptyDir: {medium: Memory}}, {name: h, hostPath: {path: /}}], ",
				`resources: {limits: {cpu: 1}}, securityContext: {runAsUser: 1}, livenessProbe: {httpGet: {port: 80, host: other}}, lifecycle: {preStop: {httpGet: {port: 80}}}`),
			want: []string{
				"Pod web: spec.containers[0].lifecycle.preStop.httpGet",
				"Pod web: spec.containers[0].livenessProbe.httpGet.host",
				"Pod web: spec.containers[0].resources",
				"Pod web: spec.containers[0].securityContext",
				"Pod web: spec.hostNetwork",
				"Pod web: spec.volumes[0].emptyDir.medium",
				"Pod web: spec.volumes[1].hostPath",
			},
		},
		"fields of a workload": {
			text: workload("Deployment", "replicas: 3\n  minReadySeconds: 5\n  strategy: {type: Recreate}"),
			want: []string{"Deployment web: spec.minReadySeconds", "Deployment web: spec.strategy"},
		},
		"fields of a CronJob": {
			text: "{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: \"0 0 * * *\", suspend: true, jobTemplate: {spec: {" +
				"completionMode: Indexed, template: " + jobPod("restartPolicy: Never, hostNetwork: true, ") + "}}}}",
			want: []string{
				"CronJob nightly: spec.jobTemplate.spec.completionMode", "CronJob nightly: spec.jobTemplate.spec.template.spec.hostNetwork",
				"CronJob nightly: spec.suspend",
			},
		},
		// Defaults of the CRD are not listed.
		"how a Kruise workload replaces pods": {
			text: kruise("v1beta1", "StatefulSet", "podManagementPolicy: Parallel\n  scaleStrategy: {maxUnavailable: 1}\n  "+
				"updateStrategy: {rollingUpdate: {unorderedUpdate: {priorityStrategy: {orderPriority: [{orderedKey: role}]}}}}"),
			want: []string{"StatefulSet web: spec.podManagementPolicy", "StatefulSet web: spec.scaleStrategy", "StatefulSet web: spec.updateStrategy"},
		},
		"how a workload replaces pods": {
			text: workload("StatefulSet", "updateStrategy: {type: OnDelete}"), want: []string{"StatefulSet web: spec.updateStrategy"},
		},
		"claims": {
			text: workload("StatefulSet", "serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := read(t, manifest.Options{}, test.text)
			expect.NoError(t, err)
			var got []string
			for _, u := range objects.Unsupported() {
				text, isPlaced := strings.CutPrefix(u.String(), fmt.Sprintf("a.yaml:%d:%d: ", u.Line, u.Column))
				got = append(got, text)
				if u.Line < 1 || !isPlaced {
					t.Errorf("wrong place %q", u)
				}
			}
			expect.Equal(t, "unsupported", test.want, got)
		})
	}
}
