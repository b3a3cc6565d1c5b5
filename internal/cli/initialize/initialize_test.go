// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package initialize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
)

const writtenMarker = `# Runs a probe in a container of the selected pods, and marks each pod with the result.
# "kubectl explain podprobemarker.spec" describes all fields, "seamark lint" checks the file.
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata:
  name: worker
spec:
  # The pods to probe, in the namespace of the marker. The selector cannot be changed later.
  selector:
    matchLabels:
      app: worker
  # The probes that run in each pod. The name is unique in the marker; events and messages contain it.
  probes:
  - name: busy
    # The container to probe. Pods without it are not probed.
    containerName: worker
    probe:
      # Runs a program and its arguments in the container, without a shell. Exit code 0 is a success.
      exec:
        command: [cat, /tmp/job]
      # Seconds from the start of the container to the first run. The default is 0.
      initialDelaySeconds: 0
      # Seconds from the start of a run to the start of the next one. The default is 10.
      periodSeconds: 10
      # A run that takes longer fails, in seconds, at most 300. The default is 1.
      timeoutSeconds: 1
      # Successes in a row until the state is Succeeded. The default is 1.
      successThreshold: 1
      # Failures in a row until the state is Failed. The default is 3.
      failureThreshold: 3
    # The labels and annotations of the pod in each state. In a state without an entry, all of them
    # are removed.
    markerPolicy:
    - state: Succeeded
      labels:
        busy: "true"
`

func TestOutput(t *testing.T) {
	stdout, stderr, code := clitest.Execute(t, New, "", "init", "--exec", "cat /tmp/job", "-l", "app=worker", "--label", "busy")
	if diff := cmp.Diff(writtenMarker, stdout); diff != "" || code != exit.OK {
		t.Errorf("exit code %d, marker (-want +got):\n%s", code, diff)
	}
	expect.Equal(t, "printed", "Note: --container is not set: the marker probes the container \"worker\". Check the name.\n", stderr)
}

// Each flag changes its field.
func TestFlags(t *testing.T) {
	stdout, stderr, code := clitest.Execute(t, New, "", "init", "--grpc", "9090/intake", "-l", "tier in (a,b),!old", "--container", "queue", "--name", "q",
		"-n", "games", "--probe", "open", "--label", "x=1,2", "--label", "game.io/y", "--annotation", "note=a b,", "--condition", "example.com/open",
		"--initial-delay", "5s", "--period", "1m", "--timeout", "2s", "--success-threshold", "3", "--failure-threshold", "4")
	if code != exit.OK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	want := `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata:
  name: q
  namespace: games
spec:
  selector:
    matchExpressions:
    - key: old
      operator: DoesNotExist
    - key: tier
      operator: In
      values:
      - a
      - b
  probes:
  - name: open
    containerName: queue
    probe:
      grpc:
        port: 9090
        service: intake
      initialDelaySeconds: 5
      periodSeconds: 60
      timeoutSeconds: 2
      successThreshold: 3
      failureThreshold: 4
    markerPolicy:
    - state: Succeeded
      labels:
        game.io/y: "true"
        x: "1"
      annotations:
        note: a b
    - state: Failed
      labels:
        x: "2"
      annotations:
        note: ""
    podConditionType: example.com/open
`
	expect.Equal(t, "marker", want, fields(stdout))
}

// fields returns the lines of a manifest that are not comments.
func fields(manifest string) string {
	var lines []string
	for line := range strings.Lines(manifest) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// Values that the probe prints are marks, too.
func TestValues(t *testing.T) {
	stdout, stderr, code := clitest.Execute(t, New, "", "init", "--exec", "stats", "-l", "app=a", "--container", "a",
		"--label-from", "game.io/map=.map,dust,mill", "--label-from", "role", "--annotation-from", "controller.kubernetes.io/pod-deletion-cost=.players")
	want := `    markerPolicy:
    - state: Succeeded
      labelsFrom:
      - allowedValues:
        - dust
        - mill
        jsonPath: .map
        key: game.io/map
      - key: role
      annotationsFrom:
      - jsonPath: .players
        key: controller.kubernetes.io/pod-deletion-cost
`
	if _, policy, _ := strings.Cut(fields(stdout), "failureThreshold: 3\n"); code != exit.OK || policy != want || !strings.Contains(stdout, "- name: map\n") {
		t.Errorf("exit code %d, errors %q, policy (-want +got):\n%s", code, stderr, cmp.Diff(want, policy))
	}
}

// workloadOf returns the manifest of a workload with the containers of its pods.
func workloadOf(version, kind, containers string) string {
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: web, namespace: games}\nspec:\n" +
		"  selector: {matchLabels: {tier: front}}\n  template:\n    metadata: {labels: {tier: front, app: x}}\n    spec: {containers: [" + containers + "]}\n"
}

// The workload says which pods and which container are probed.
func TestWorkload(t *testing.T) {
	const one, two = "{name: main, image: x, ports: [{name: http, containerPort: 80}]}", "{name: main, image: x}, {name: agent, image: z}"
	const marker = "apiVersion: apps.kruise.io/v1alpha1\nkind: PodProbeMarker\nmetadata:\n  name: web\n  namespace: games\n" +
		"spec:\n  selector:\n    matchLabels:\n      tier: front\n" +
		"  probes:\n  - name: up\n    containerName: main\n"
	for name, test := range map[string]struct {
		in         string
		args       []string
		want, errs string
	}{
		"Deployment":            {workloadOf("apps/v1", "Deployment", one), nil, marker, ""},
		"StatefulSet":           {workloadOf("apps/v1", "StatefulSet", one), nil, marker, ""},
		"CloneSet":              {workloadOf("apps.kruise.io/v1alpha1", "CloneSet", one), nil, marker, ""},
		"StatefulSet of Kruise": {workloadOf("apps.kruise.io/v1beta1", "StatefulSet", one), nil, marker, ""},
		"DaemonSet of Kruise": {
			"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Service}]\n---\n" + workloadOf("apps.kruise.io/v1alpha1", "DaemonSet", one), nil,
			marker, "",
		},
		"container of the flag": {workloadOf("apps/v1", "Deployment", two), []string{"--container", "main"}, marker, ""},
		"selector of the flag": {
			workloadOf("apps/v1", "Deployment", one), []string{"-l", "app=x", "--name", "other", "-n", "games"},
			strings.NewReplacer("name: web", "name: other", "tier: front", "app: x").Replace(marker), "",
		},
		"several containers": {workloadOf("apps/v1", "Deployment", two), nil, "", "--container: required: must be main or agent"},
		"another container": {
			workloadOf("apps/v1", "Deployment", one), []string{"--container", "agent"}, "",
			`--container: Deployment games/web (standard input:1) has no container "agent" that probes can run in`,
		},
		"other pods":            {workloadOf("apps/v1", "Deployment", one), []string{"-l", "app=y"}, "", "--selector: "},
		"label of the selector": {workloadOf("apps/v1", "Deployment", one), []string{"-l", "app=x", "--label", "tier=a"}, "", "--label: "},
		"no workload": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", nil, "",
			"--filename: -: no workload: must have a Deployment, ReplicaSet, StatefulSet or DaemonSet, " +
				"or a CloneSet, StatefulSet or DaemonSet of apps.kruise.io",
		},
		"no selector": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", []string{"--container", "a"}, "", "--filename: x has no spec.selector",
		},
		"unknown kind": {
			workloadOf("apps.kruise.io/v1alpha1", "CloneSett", one), nil, "",
			`--filename: standard input:2:1: kind: "CloneSett" is not a kind of apps.kruise.io: did you mean "CloneSet"?`,
		},
		"unknown field": {
			strings.Replace(workloadOf("apps/v1", "Deployment", one), "selector", "selectr", 1), nil, "",
			`--filename: web has no spec.selector; spec.selectr: unknown field: did you mean "selector"?`,
		},
		"unknown field of a set": {
			strings.Replace(workloadOf("apps.kruise.io/v1alpha1", "CloneSet", one), "selector", "selectr", 1), nil, "",
			`--filename: web has no spec.selector; spec.selectr: unknown field: did you mean "selector"?`,
		},
		"two workloads": {
			workloadOf("apps/v1", "Deployment", one) + "---\n" + workloadOf("apps/v1", "StatefulSet", one), nil, "",
			"--filename: -: 2 workloads (Deployment web, StatefulSet web): must be one",
		},
		"a field of a wrong type": {
			strings.Replace(workloadOf("apps/v1", "Deployment", one), "{tier: front}", "[1]", 1), nil, "",
			"--filename: standard input:5:14: Deployment web: spec.selector.matchLabels: must be ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"init", "-f", "-", "--tcp", "80", "--label", "up"}, test.args...)
			stdout, stderr, code := clitest.Execute(t, New, test.in, args...)
			if test.errs != "" {
				if code != exit.Usage || !strings.HasPrefix(stderr, "Error: "+test.errs) || stdout != "" {
					t.Errorf("exit code %d, output %q, errors:\n%s\nwant:\n%s", code, stdout, stderr, test.errs)
				}
				return
			}
			if got := fields(stdout); code != exit.OK || stderr != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("exit code %d, errors %q, marker:\n%s\nwant:\n%s", code, stderr, got, test.want)
			}
		})
	}
}

// Each error names the flag. Nothing is printed.
func TestErrors(t *testing.T) {
	valid := []string{"--exec", "cat /tmp/job", "-l", "app=worker", "--label", "busy"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing": {nil, "exactly one of --exec, --http, --tcp and --grpc is required, not 0\n" +
			"--selector: must select pods by at least one label, such as app=worker\n" +
			"--label, --annotation, --label-from, --annotation-from or --condition is required: a probe must set a mark\n" +
			"the marker is described by flags, for example: seamark init --exec 'cat /tmp/job' -l app=worker --label busy\n"},
		"argument": {[]string{"x"}, `unknown command "x" for "seamark init"`},
		"only a label": {
			[]string{"--label", "busy"},
			"exactly one of --exec, --http, --tcp and --grpc is required, not 0\n--selector: must select pods by at least one label, such as app=worker",
		},
		"no mark":      {valid[:4], "--label, --annotation, --label-from, --annotation-from or --condition is required: a probe must set a mark"},
		"two handlers": {append([]string{"--tcp", "80"}, valid...), "exactly one of --exec, --http, --tcp and --grpc is required, not 2"},
		"port": {
			[]string{"--tcp", "0", "-l", "app=a", "--label", "busy"}, `--tcp: "0" is invalid: must be a port number from 1 to 65535 or the name of a port`,
		},
		"no name": {
			[]string{"--tcp", "1", "-l", "a=b,c=d", "--label", "busy"},
			"--name: required: the selector has no label whose value can be used\n--container: required: the selector has no label whose value can be used",
		},
		"same label": {append([]string{"--label", "busy=x"}, valid...), `--label: "busy" occurs twice`},
		"three values": {
			[]string{"--tcp", "1", "-l", "app=a", "--label", "x=1,2,3"},
			`--label: "x=1,2,3" is invalid: must have at most two values, for the states Succeeded`,
		},
		"period": {append([]string{"--period", "1500ms"}, valid...), "--period: 1.5s is invalid: must be whole seconds, at least 1s"},
		"short period": {
			append([]string{"--period", "1s", "--timeout", "2s"}, valid...),
			"--timeout: the timeout of 2 s is longer than the period of 1 s: set periodSeconds to 2 or more, or timeoutSeconds to 1 or less",
		},
		"long timeout": {
			append([]string{"--period", "10m", "--timeout", "6m"}, valid...),
			"--timeout: Invalid value: 360: spec.probes[0].probe.timeoutSeconds in body should be less than or equal to 300",
		},
		"delay":             {append([]string{"--initial-delay", "-1s"}, valid...), "--initial-delay: -1s is invalid: must be whole seconds, at least 0s"},
		"threshold":         {append([]string{"--failure-threshold", "0"}, valid...), "--failure-threshold: 0 is invalid: must be 1 or more"},
		"script":            {[]string{"--exec", "if true", "-l", "app=a", "--label", "busy"}, "--exec: the script has a syntax error: line 1, column 1:"},
		"label of selector": {[]string{"--tcp", "1", "-l", "app=a", "--label", "app"}, `--label: "app" is a key of spec.selector`},
		"label value":       {[]string{"--tcp", "1", "-l", "app=a", "--label", "x=a b"}, "--label: Invalid value: "},
		"deletion cost": {
			append([]string{"--annotation", "controller.kubernetes.io/pod-deletion-cost=low"}, valid...), `--annotation: "low" is not an integer`,
		},
		"condition": {
			append([]string{"--condition", "Ready"}, valid...), `--condition: Invalid value: "Ready": must not be a condition type that Kubernetes sets`,
		},
		"value":             {append([]string{"--label-from", "=x"}, valid...), `--label-from: "=x" is invalid: must be KEY, `},
		"path of a value":   {append([]string{"--annotation-from", "x=y"}, valid...), `--annotation-from: Invalid value: "y": `},
		"same value":        {append([]string{"--label-from", "busy"}, valid...), "--label-from: "},
		"missing workload":  {append([]string{"-f", "/missing.yaml"}, valid...), "--filename: read manifests: stat /missing.yaml: no such file"},
		"container":         {append([]string{"--container", "A"}, valid...), `--container: Invalid value: "A": must be a container name`},
		"name":              {append([]string{"--name", "A"}, valid...), `--name: Invalid value: "A": a lowercase RFC 1123 subdomain`},
		"namespace":         {append([]string{"--namespace", "A"}, valid...), `--namespace: Invalid value: "A": a lowercase RFC 1123 label`},
		"probe":             {append([]string{"--probe", "a#b"}, valid...), `--probe: Invalid value: "a#b": must consist of letters`},
		"file in no folder": {append([]string{"-o", "/missing/marker.yaml"}, valid...), "--output: open /missing/marker.yaml: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := clitest.Execute(t, New, "", append([]string{"init"}, test.args...)...)
			wanted := exit.Usage
			if name == "file in no folder" {
				wanted = exit.Failed
			}
			if code != wanted || !strings.HasPrefix(stderr, "Error: "+test.want) || stdout != "" {
				t.Errorf("exit code %d, output %q, errors:\n%s\nwant:\n%s", code, stdout, stderr, test.want)
			}
		})
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marker.yaml")
	args := []string{"init", "--exec", "cat /tmp/job", "-l", "app=worker", "--container", "worker", "--label", "busy", "-o", file}
	stdout, stderr, code := clitest.Execute(t, New, "", args...)
	if want := "Wrote " + file + ". Check it together with the workload: seamark lint " + file + " WORKLOAD.yaml\n"; code != exit.OK || stdout != "" ||
		stderr != want {
		t.Errorf("exit code %d, output %q, errors %q, want %q", code, stdout, stderr, want)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != writtenMarker {
		t.Errorf("the file contains %q, error %v", content, err)
	}
	_, stderr, code = clitest.Execute(t, New, "", args...)
	if code != exit.Usage || !strings.HasPrefix(stderr, "Error: --output: "+file+" exists: ") {
		t.Errorf("exit code %d, errors %q for a file that exists", code, stderr)
	}
	_, stderr, code = clitest.Execute(t, New, "", append(args, "--force", "--label", "x")...)
	if content, err := os.ReadFile(file); code != exit.OK || err != nil || !strings.Contains(string(content), "x: \"true\"") {
		t.Errorf("exit code %d, errors %q, the file contains %q, error %v", code, stderr, content, err)
	}
}

// A recipe is written with the content that the tests run, and is not overwritten.
func TestRecipe(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mine")
	args := []string{"init", "--recipe", "openttd", "-o", folder}
	stdout, stderr, code := clitest.Execute(t, New, "", args...)
	if code != exit.OK || stdout != "" || !strings.HasPrefix(stderr, "Wrote "+folder) {
		t.Fatalf("exit code %d, output %q, errors %q", code, stdout, stderr)
	}
	for _, name := range []string{"marker.yaml", "servers.yaml", "guard.yaml", "players/players.yaml"} {
		want, err := os.ReadFile(filepath.Join("../../../examples/recipes/openttd", name))
		expect.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(folder, name))
		expect.NoError(t, err)
		expect.Equal(t, name, string(want), string(got))
	}
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil || !strings.Contains(string(page), "kubectl apply -f "+folder) || strings.Contains(string(page), "](../") {
		t.Errorf("error %v, page:\n%s", err, page)
	}
	expect.NoError(t, os.Remove(filepath.Join(folder, "guard.yaml")))
	_, stderr, code = clitest.Execute(t, New, "", args...)
	if _, err := os.Stat(filepath.Join(folder, "guard.yaml")); code != exit.Usage || !strings.Contains(stderr, "--force") || err == nil {
		t.Errorf("second time: exit code %d, errors %q, file that was missing: %v", code, stderr, err)
	}
	_, stderr, code = clitest.Execute(t, New, "", append(args, "--force")...)
	expect.Equal(t, "exit code with --force: "+stderr, exit.OK, code)
}

func TestRecipes(t *testing.T) {
	stdout, _, code := clitest.Execute(t, New, "", "init", "--list")
	if code != exit.OK || !strings.Contains(stdout, "etcd ") {
		t.Errorf("exit code %d, list:\n%s", code, stdout)
	}
	for _, name := range []string{"oracle", "..", ".", "etcd/image"} {
		_, stderr, code := clitest.Execute(t, New, "", "init", "--recipe", name)
		if code != exit.Usage || !strings.Contains(stderr, "must be one of etcd") {
			t.Errorf("recipe %q: exit code %d, errors %q", name, code, stderr)
		}
	}
}
