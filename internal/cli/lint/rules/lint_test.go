// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

// worker is a marker without findings, apart from the information about its program.
const worker = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata:
  name: worker
spec:
  selector:
    matchLabels:
      app: worker
  probes:
  - name: busy
    containerName: worker
    probe:
      exec:
        command: [/bin/cat, /tmp/job]
      periodSeconds: 2
      failureThreshold: 1
    markerPolicy:
    - state: Succeeded
      labels:
        busy: "true"
      annotations:
        controller.kubernetes.io/pod-deletion-cost: "10"
    podConditionType: example.com/busy
`

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: worker
spec:
  selector:
    matchLabels:
      app: worker
  template:
    metadata:
      labels:
        app: worker
    spec:
      containers:
      - name: worker
        image: busybox
        ports:
        - name: http
          containerPort: 8080
`

const service = `apiVersion: v1
kind: Service
metadata:
  name: busy
spec:
  selector:
    app: worker
    busy: "true"
`

// edited returns the text with each first string replaced by the second one.
func edited(t *testing.T, text string, edits ...string) string {
	t.Helper()
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("%q is not in the manifest", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

// check returns the findings of the manifests, one line each. The files are a.yaml, b.yaml and so on.
func check(t *testing.T, linter *rules.Linter, manifests ...string) []string {
	t.Helper()
	var files []document.File
	for i, manifest := range manifests {
		files = append(files, document.File{Name: string(rune('a'+i)) + ".yaml", Content: []byte(manifest)})
	}
	result := linter.Check(t.Context(), files)
	var lines []string
	for _, f := range result.Findings {
		checkRule(t, f)
		line := fmt.Sprintf("%s:%d:%d %s", f.File, f.Line, f.Column, f.Rule)
		if f.Field != "" {
			line += " " + f.Field
		}
		line += ": " + f.Message
		if f.Fix != "" {
			line += " -> " + f.Fix
		}
		lines = append(lines, line)
	}
	return lines
}

// checkRule fails the test if the finding has no rule, or another severity than its rule.
func checkRule(t *testing.T, f rules.Finding) {
	t.Helper()
	i := slices.IndexFunc(rules.All(), func(r rules.Rule) bool { return r.Name == f.Rule })
	if i < 0 || rules.All()[i].Severity != f.Severity {
		t.Errorf("finding %+v has an unknown rule, or another severity than it", f)
	}
}

// linted is a manifest, and what is found in it.
type linted struct {
	manifest string
	want     []string
}

func checkEach(t *testing.T, cases map[string]linted) {
	t.Helper()
	linter := &rules.Linter{}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { expect.Equal(t, "findings", test.want, check(t, linter, test.manifest)) })
	}
}

func TestMarker(t *testing.T) {
	const command = "command: [/bin/cat, /tmp/job]"
	for name, test := range map[string]struct {
		edits []string
		want  []string
	}{
		"valid": {},
		"own selector": {
			edits: []string{"app: worker", "busy: x"},
			want: []string{
				`a.yaml:20:9 mark-in-selector spec.probes[0].markerPolicy[0].labels[busy]: "busy" is a key of spec.selector: the marker would change which pods it selects -> set another label, or select the pods by other labels`,
			},
		},
		"own selector, expression": {
			edits: []string{"matchLabels:\n      app: worker", "matchExpressions:\n    - {key: busy, operator: Exists}"},
			want: []string{
				`a.yaml:20:9 mark-in-selector spec.probes[0].markerPolicy[0].labels[busy]: "busy" is a key of spec.selector: the marker would change which pods it selects -> set another label, or select the pods by other labels`,
			},
		},
		"invalid annotation": {
			edits: []string{"  name: worker\nspec", "  name: worker\n  annotations:\n    seamark.dev/message-updates: immediate\nspec"},
			want: []string{
				`a.yaml:6:5 invalid-annotation metadata.annotations[seamark.dev/message-updates]: "immediate" is invalid and counts as not set: must be Limited or Immediate -> correct or remove it`,
			},
		},
		"misspelled field": {
			edits: []string{"periodSeconds", "periodSecond"},
			want: []string{
				`a.yaml:12:5 openkruise-defaults spec.probes[0].probe: periodSeconds: the default is 10 as in Kubernetes, and 1 in OpenKruise 1.9 -> set the fields if the marker is also used with OpenKruise`,
				`a.yaml:15:7 unknown-field spec.probes[0].probe.periodSecond: unknown field -> did you mean "periodSeconds"?`,
			},
		},
		"missing container": {
			edits: []string{"    containerName: worker\n", ""},
			want:  []string{"a.yaml:10:5 schema spec.probes[0].containerName: Required value"},
		},
		"command that is no list": {
			edits: []string{command, "command: cat /tmp/x"},
			want:  []string{`a.yaml:14:9 schema spec.probes[0].probe.exec.command: Invalid value: "cat /tmp/x": must be a list -> use ["cat", "/tmp/x"]`},
		},
		"boolean label": {
			edits: []string{`"true"`, "yes"},
			want: []string{
				`a.yaml:20:9 schema spec.probes[0].markerPolicy[0].labels.busy: Invalid value: true: must be a string -> write the value in quotes`,
			},
		},
		"CEL rule": {
			edits: []string{"example.com/busy", "Ready"},
			want: []string{
				`a.yaml:23:5 schema spec.probes[0].podConditionType: Invalid value: "Ready": must not be a condition type that Kubernetes sets: use another type, such as game.io/idle`,
			},
		},
		"two handlers": {
			edits: []string{"exec:", "tcpSocket: {port: 80}\n      exec:"},
			want:  []string{`a.yaml:12:5 schema spec.probes[0].probe: Invalid value: must have exactly one of exec, httpGet, tcpSocket and grpc`},
		},
		"invalid name": {
			edits: []string{"name: worker", "name: Worker"},
			want: []string{
				`a.yaml:4:3 metadata metadata.name: Invalid value: "Worker": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			},
		},
		"provider annotation": {
			edits: []string{"controller.kubernetes.io/pod-deletion-cost", "kruise.io/podprobe"},
			want: []string{
				`a.yaml:21:7 provider-annotation spec.probes[0].markerPolicy[0].annotations: "kruise.io/podprobe" is invalid: must not be an annotation that Seamark sets for providers -> use another key`,
			},
		},
		"label of an exclusive policy": {
			edits: []string{"busy: \"true\"", "exclusive.seamark.dev/x: \"true\""},
			want: []string{`a.yaml:19:7 ticket-label spec.probes[0].markerPolicy[0].labels: "exclusive.seamark.dev/x" is invalid: ` +
				`must not have the prefix "exclusive.seamark.dev/" of labels that Seamark sets for exclusive policies -> use another key`},
		},
		"apiVersion": {
			edits: []string{"v1alpha1", "v1beta1"},
			want: []string{
				`a.yaml:1:1 api-version apiVersion: "apps.kruise.io/v1beta1" is not supported for the kind PodProbeMarker -> use apps.kruise.io/v1alpha1`,
			},
		},
		"short period": {
			edits: []string{"periodSeconds: 2", "periodSeconds: 2\n      timeoutSeconds: 5"},
			want: []string{
				"a.yaml:16:7 period-shorter-than-timeout spec.probes[0].probe.timeoutSeconds: the timeout of 5 s is longer than the period of 2 s -> set periodSeconds to 5 or more, or timeoutSeconds to 2 or less",
			},
		},
		"short period in milliseconds": {
			edits: []string{"periodSeconds: 2", "periodSeconds: 2\n      periodMilliseconds: 600"},
			want: []string{
				"a.yaml:12:5 period-shorter-than-timeout spec.probes[0].probe.timeoutMilliseconds: the timeout of 1000 ms is longer than the period of 600 ms -> set periodMilliseconds to 1000 or more, or timeoutMilliseconds to 600 or less",
			},
		},
		"times in milliseconds": {
			edits: []string{"periodSeconds: 2", "periodSeconds: 2\n      periodMilliseconds: 600\n      timeoutMilliseconds: 600"},
		},
		"timeout longer than the default period": {
			edits: []string{"periodSeconds: 2", "timeoutSeconds: 30"},
			want: []string{
				"a.yaml:12:5 openkruise-defaults spec.probes[0].probe: periodSeconds: the default is 10 as in Kubernetes, and 1 in OpenKruise 1.9 -> set the fields if the marker is also used with OpenKruise",
				"a.yaml:15:7 period-shorter-than-timeout spec.probes[0].probe.timeoutSeconds: the timeout of 30 s is longer than the period of 10 s -> set periodSeconds to 30 or more, or timeoutSeconds to 10 or less",
			},
		},
		"unset thresholds": {
			edits: []string{"      periodSeconds: 2\n      failureThreshold: 1\n", ""},
			want: []string{
				"a.yaml:12:5 openkruise-defaults spec.probes[0].probe: periodSeconds and failureThreshold: the default is 10 and 3 as in Kubernetes, and 1 and 1 in OpenKruise 1.9 -> set the fields if the marker is also used with OpenKruise",
			},
		},
		"deletion cost": {
			edits: []string{`"10"`, `"+10"`},
			want: []string{
				`a.yaml:22:9 deletion-cost spec.probes[0].markerPolicy[0].annotations[controller.kubernetes.io/pod-deletion-cost]: "+10" is not an integer from -2147483648 to 2147483647: the API server refuses the marks -> use a decimal number without "+" and leading zeros, such as "-10"`,
			},
		},
		"whole line": {
			edits: []string{command, `command: ["cat /tmp/job"]`},
			want: []string{
				`a.yaml:14:19 exec-shell-line spec.probes[0].probe.exec.command[0]: "cat /tmp/job" is the name of one program: an exec probe does not split its command -> use ["cat", "/tmp/job"]`,
			},
		},
		"whole line for a shell": {
			edits: []string{command, `command: ["cat $HOME/job"]`},
			want: []string{
				`a.yaml:14:19 exec-shell-line spec.probes[0].probe.exec.command[0]: "cat $HOME/job" is the name of one program: an exec probe does not split its command -> use ["sh", "-c", "cat $HOME/job"]`,
			},
		},
		"builtin": {
			edits: []string{command, `command: [source, /x]`},
			want: []string{
				`a.yaml:14:19 exec-shell-builtin spec.probes[0].probe.exec.command[0]: "source" exists only inside shells, and an exec probe runs without a shell -> use ["sh", "-c", "source /x"]`,
			},
		},
		"operator": {
			edits: []string{command, `command: [/bin/ps, "|", grep, x]`},
			want: []string{
				`a.yaml:14:28 exec-shell-syntax spec.probes[0].probe.exec.command[1]: "|" is an argument of "/bin/ps": an exec probe runs without a shell -> use ["sh", "-c", "/bin/ps | grep x"]`,
			},
		},
		"script with an error": {
			edits: []string{command, `command: [/bin/sh, -c, 'if true; then echo x']`},
			want: []string{
				"a.yaml:14:32 exec-shell-script spec.probes[0].probe.exec.command[2]: the script has a syntax error: line 1, column 1: `if` statement must end with `fi`",
			},
		},
		"missing script": {
			edits: []string{command, `command: [/bin/sh, -c]`},
			want:  []string{"a.yaml:14:9 exec-shell-script spec.probes[0].probe.exec.command: the script after -c is missing"},
		},
		"split script": {
			edits: []string{command, `command: [/bin/sh, -c, cat, /tmp/job]`},
			want: []string{
				`a.yaml:14:37 exec-shell-arguments spec.probes[0].probe.exec.command[3]: the script is only "cat": what follows is not a part of it -> use one item for the script: ["/bin/sh", "-c", "cat /tmp/job"]`,
			},
		},
		"label of a failed pipeline": {
			edits: []string{
				command, `command: [sh, -c, redis-cli role | grep -q master]`, "state: Succeeded\n      labels:\n        busy: \"true\"",
				"state: Failed\n      labels: {role: replica, zone: a}",
			},
			want: []string{
				`a.yaml:14:19 exec-no-path spec.probes[0].probe.exec.command[0]: "sh" is searched in the PATH of the container -> use the absolute path of the program`,
				`a.yaml:19:16 exec-failed-label spec.probes[0].markerPolicy[0].labels[role]: role=replica does not only mean that the check has failed: "redis-cli role | grep -q master" ends with the exit code of its last program, also if the others fail or are missing -> set labels in the state Succeeded only, or run the program itself, without a shell: if it is missing, there is no result`,
			},
		},
		"label of a succeeded pipeline": {edits: []string{command, `command: [/bin/sh, -c, redis-cli role | grep -q master]`}},
		"annotation of a failed pipeline": {edits: []string{
			command, `command: [/bin/sh, -c, redis-cli role | grep -q master]`, "state: Succeeded\n      labels:\n        busy: \"true\"\n", "state: Failed\n",
		}},
		"no path": {
			edits: []string{command, `command: [cat, /tmp/job]`},
			want: []string{
				`a.yaml:14:19 exec-no-path spec.probes[0].probe.exec.command[0]: "cat" is searched in the PATH of the container -> use the absolute path of the program`,
			},
		},
		"relative path": {
			edits: []string{command, `command: [bin/cat, /tmp/job]`},
			want: []string{
				`a.yaml:14:19 exec-no-path spec.probes[0].probe.exec.command[0]: "bin/cat" is relative to the working directory of the container -> use the absolute path of the program`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "findings", test.want, check(t, &rules.Linter{}, edited(t, worker, test.edits...)))
		})
	}
}

// The lines of generated manifests are not those of a file, and mixed files may have anything.
func TestFiles(t *testing.T) {
	linter := &rules.Linter{}
	result := linter.Check(t.Context(), []document.File{
		{Name: "kustomization.yaml", Content: []byte(edited(t, worker, "periodSeconds", "period")), Generated: true},
		{Name: "values.yaml", Content: []byte("replicas: 1\n"), Mixed: true},
		{Name: "unversioned.yaml", Content: []byte("kind: PodProbeMarker\n"), Mixed: true},
	})
	var got []string
	for _, f := range result.Findings {
		if f.Severity.AtLeast(rules.Warning) {
			got = append(got, fmt.Sprintf("%s:%d:%d %s %s", f.File, f.Line, f.Column, f.Rule, f.Object))
		}
	}
	want := []string{"kustomization.yaml:0:0 unknown-field PodProbeMarker worker", "unversioned.yaml:1:1 not-an-object "}
	expect.Equal(t, "findings", want, got)
	if result.Objects != 1 || result.Checked != 1 {
		t.Errorf("%d objects, %d checked, want 1 and 1", result.Objects, result.Checked)
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range rules.All() {
		if seen[rule.Name] || rule.Summary == "" || !slices.Contains(rules.Severities(), rule.Severity) {
			t.Errorf("rule %+v is incomplete, or occurs twice", rule)
		}
		seen[rule.Name] = true
	}
}

// FuzzLint checks that no manifest causes a panic, and that findings are complete and the same in
// each run.
func FuzzLint(f *testing.F) {
	f.Add(worker, deployment)
	f.Add(worker+"---\n"+service, deployment+"--- text")
	f.Add("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}, 1, null]}", "a: &a [*a]")
	f.Add(
		"apiVersion: apps.kruise.io/v1alpha1\nkind: PodProbeMarker\nspec: {selector: {matchExpressions: [{key: a}]}, probes: [{probe: {exec: {command: [sh, -c]}}}]}",
		"",
	)
	f.Add("apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nspec: {template: {spec: {containers: [1]}}}", "apiVersion: v1\nkind: Pod\nspec: []")
	linter := &rules.Linter{}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 1<<16 {
			return
		}
		first, last := check(t, linter, a, b), check(t, linter, a, b)
		expect.Equal(t, "findings of the second run", first, last)
	})
}
