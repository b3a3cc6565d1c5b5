// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/test/expect"
)

// goodMarker has no errors and no warnings.
var goodMarker = strings.NewReplacer("container:", "containerName:", `["cat /tmp/job"]`, "[cat, /tmp/job]").Replace(clitest.BadMarker)

var warnedMarker = strings.NewReplacer("container:", "containerName:").Replace(clitest.BadMarker)

func TestOutput(t *testing.T) {
	const findings = `standard input:7:5: error: spec.probes[0].containerName: Required value [schema]
standard input:8:5: error: spec.probes[0].container: unknown field [unknown-field]
`
	const warning = `standard input:10:24: warning: spec.probes[0].probe.exec.command[0]: "cat /tmp/job" is the name of one program: ` +
		`an exec probe does not split its command [exec-shell-line]
    fix: use ["cat", "/tmp/job"]
`
	for name, test := range map[string]struct {
		input          string
		args           []string
		stdout, stderr string
		code           int
	}{
		"findings": {
			clitest.BadMarker, nil, findings + warning, "Error: 2 errors, 1 warning in 1 file: 1 object checked; 1 finding not shown, see --show\n", exit.Failed,
		},
		"only errors": {
			clitest.BadMarker, []string{"--show", "error"}, findings,
			"Error: 2 errors, 1 warning in 1 file: 1 object checked; 2 findings not shown, see --show\n", exit.Failed,
		},
		"warning": {warnedMarker, nil, warning, "0 errors, 1 warning in 1 file: 1 object checked; 1 finding not shown, see --show\n", exit.OK},
		"fail on warning": {
			warnedMarker, []string{"--fail-on", "warning"}, warning,
			"Error: 0 errors, 1 warning in 1 file: 1 object checked; 1 finding not shown, see --show\n", exit.Failed,
		},
		"clean": {
			goodMarker, []string{"--fail-on", "warning"}, "", "0 errors, 0 warnings in 1 file: 1 object checked; 2 findings not shown, see --show\n", exit.OK,
		},
		"ignored warning": {
			warnedMarker, []string{"--fail-on", "warning", "--ignore", "exec-shell-line"}, "",
			"0 errors, 0 warnings in 1 file: 1 object checked; 1 finding ignored; 1 finding not shown, see --show\n", exit.OK,
		},
		"ignored errors": {
			clitest.BadMarker, []string{"--ignore", "schema,unknown-field", "--ignore", "openkruise-defaults"}, warning,
			"0 errors, 1 warning in 1 file: 1 object checked; 3 findings ignored\n", exit.OK,
		},
		"only ignored errors": {
			"a: b: c\n", []string{"--ignore", "invalid-yaml"}, "", "0 errors, 0 warnings in 1 file: 0 objects checked; 1 finding ignored\n", exit.OK,
		},
		"ignored in JSON": {goodMarker, []string{"-o", "json", "--ignore", "openkruise-defaults,exec-no-path"}, `{
  "findings": [],
  "summary": {
    "errors": 0,
    "warnings": 0,
    "infos": 0,
    "ignored": 2,
    "files": 1,
    "objects": 1,
    "checked": 1
  }
}
`, "0 errors, 0 warnings in 1 file: 1 object checked; 2 findings ignored\n", exit.OK},
		"YAML": {
			strings.NewReplacer(
				"periodSeconds: 1", "periodSeconds: 1\n      failureThreshold: 1",
			).Replace(goodMarker), []string{"--show", "info", "-o", "yaml"}, `findings:
- column: 24
  field: spec.probes[0].probe.exec.command[0]
  file: standard input
  fix: use the absolute path of the program
  line: 10
  message: '"cat" is searched in the PATH of the container'
  object: PodProbeMarker worker
  rule: exec-no-path
  severity: info
summary:
  checked: 1
  errors: 0
  files: 1
  infos: 1
  objects: 1
  warnings: 0
`, "0 errors, 0 warnings in 1 file: 1 object checked\n", exit.OK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := clitest.Execute(t, New, test.input, append([]string{"lint", "-"}, test.args...)...)
			expect.Equal(t, "output", test.stdout, stdout)
			if diff := cmp.Diff(test.stderr, stderr); diff != "" || code != test.code {
				t.Errorf("exit code %d, want %d; errors (-want +got):\n%s", code, test.code, diff)
			}
		})
	}
}

// SARIF lists the findings of ignored rules as suppressed, and --show applies to them.
func TestSARIFWithIgnoredRules(t *testing.T) {
	for show, want := range map[string][]string{
		"warning": {"schema", "unknown-field", "exec-shell-line suppressed"},
		"info":    {"schema", "unknown-field", "openkruise-defaults suppressed", "exec-shell-line suppressed"},
	} {
		stdout, _, code := clitest.Execute(t, New, clitest.BadMarker,
			"lint", "-", "-o", "sarif", "--show", show, "--ignore", "openkruise-defaults,exec-shell-line")
		var log struct {
			Version string
			Runs    []struct {
				Tool    struct{ Driver struct{ Version string } }
				Results []struct {
					RuleID       string
					Suppressions []any
				}
			}
		}
		expect.NoError(t, json.Unmarshal([]byte(stdout), &log))
		var got []string
		for _, result := range log.Runs[0].Results {
			got = append(got, result.RuleID+strings.Repeat(" suppressed", len(result.Suppressions)))
		}
		if diff := cmp.Diff(want, got); diff != "" || code != exit.Failed || log.Version != "2.1.0" || log.Runs[0].Tool.Driver.Version != "v1.2.3" {
			t.Errorf("--show %s: exit code %d, results (-want +got):\n%s", show, code, diff)
		}
	}
}

func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	clitest.WriteFiles(t, folder, map[string]string{
		"empty/notes.txt":              "x",
		"broken/kustomization.yaml":    "resources: [missing.yaml]\n",
		"comment.yaml":                 "# nothing\n",
		"large.yaml":                   strings.Repeat("#", files.MaxBytes+1),
		"values/replicas/values.yaml":  "replicas: 1\n",
		"locked/components/notes.yaml": "",
		"pod.yaml":                     clitest.OnePod,
	})
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no file": {nil, "FILE is required: specify files, folders, or - for the standard input"},
		"output":  {[]string{"-", "-o", "xml"}, `--output: "xml" is invalid: must be text, json, yaml or sarif`},
		"severity": {
			[]string{"-", "--fail-on", "info", "--show", "all"},
			"--fail-on: \"info\" is invalid: must be warning or error\n--show: \"all\" is invalid: must be info, warning or error",
		},
		"ignored rule":   {[]string{"-", "--ignore", "schema,exec-no-pth"}, `--ignore: "exec-no-pth" is invalid: must be invalid-yaml, not-an-object, `},
		"similar rule":   {[]string{"-", "--ignore", "exec-no-pth"}, `; did you mean "exec-no-path"?`},
		"missing file":   {[]string{filepath.Join(folder, "missing.yaml")}, "no such file or directory"},
		"empty folder":   {[]string{filepath.Join(folder, "empty")}, "no .yaml, .yml or .json file in the folder"},
		"comments only":  {[]string{filepath.Join(folder, "comment.yaml")}, "comment.yaml: no Kubernetes object"},
		"other files":    {[]string{filepath.Join(folder, "values")}, "values: no Kubernetes object"},
		"large file":     {[]string{filepath.Join(folder, "large.yaml")}, "large.yaml: larger than 16777216 bytes"},
		"kustomization":  {[]string{filepath.Join(folder, "broken")}, "build kustomization "},
		"standard input": {[]string{"-"}, "-: no Kubernetes object"},
		"other objects": {
			[]string{filepath.Join(folder, "pod.yaml")},
			"pod.yaml: nothing to check: must have an object of a kind that Seamark serves, such as PodProbeMarker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := clitest.Execute(t, New, "", append([]string{"lint"}, test.args...)...)
			if code != exit.Usage || !strings.Contains(stderr, test.want) || stdout != "" {
				t.Errorf("exit code %d, output %q, errors %q, want %q", code, stdout, stderr, test.want)
			}
		})
	}
}

// Folders are read with their subfolders, except for hidden ones and the templates of charts. Each
// kustomization stands for itself.
func TestFolders(t *testing.T) {
	folder := t.TempDir()
	clitest.WriteFiles(t, folder, map[string]string{
		"a/marker.yaml":                warnedMarker,
		"b/marker.json":                `{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "second"}}`,
		"b/values.yml":                 "replicas: 1\n",
		"b/notes.txt":                  clitest.BadMarker,
		".hidden/marker.yaml":          clitest.BadMarker,
		"chart/Chart.yaml":             "name: x\n",
		"chart/templates/marker.yaml":  "{{ if true }}\n",
		"base/kustomization.yaml":      "resources: [marker.yaml]\n",
		"base/marker.yaml":             warnedMarker,
		"overlay/kustomization.yaml":   "resources: [../base]\nnamespace: games\n",
		"component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
	})
	t.Chdir(folder)
	for _, name := range []string{".", "./", folder} {
		stdout, stderr, code := clitest.Execute(t, New, "", "lint", name)
		prefix := ""
		if name == folder {
			prefix = folder + string(filepath.Separator)
		}
		const field = `spec.probes[0].probe.exec.command[0]: "cat /tmp/job" is the name of one program: ` +
			`an exec probe does not split its command [exec-shell-line]` +
			"\n    fix: use [\"cat\", \"/tmp/job\"]\n"
		want := prefix + "a/marker.yaml:10:24: warning: " + field +
			prefix + "b/marker.json:1:1: error: spec: Required value [schema]\n" +
			prefix + "base/kustomization.yaml: warning: PodProbeMarker worker: " + field +
			prefix + "overlay/kustomization.yaml: warning: PodProbeMarker games/worker: " + field
		if diff := cmp.Diff(want, stdout); diff != "" || code != exit.Failed {
			t.Errorf("%s: exit code %d, errors %q, output (-want +got):\n%s", name, code, stderr, diff)
		}
	}
	stdout, stderr, code := clitest.Execute(t, New, "", "lint", "overlay")
	if code != exit.OK || !strings.HasPrefix(stdout, "overlay/kustomization.yaml: warning: ") {
		t.Errorf("exit code %d, errors %q, output:\n%s", code, stderr, stdout)
	}
}

// Many findings are counted instead of printed, except for programs.
func TestManyFindingsAreCounted(t *testing.T) {
	manifest := strings.Repeat("---\napiVersion: apps.kruise.io/v1alpha1\nkind: Game\n", 20_000)
	stdout, stderr, code := clitest.Execute(t, New, manifest, "lint", "-")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if want := "19000 more findings: other formats than text show all"; lines[len(lines)-1] != want || len(lines) > 2*maxFindings+1 {
		t.Errorf("%d lines, the last one is %q, want %q", len(lines), lines[len(lines)-1], want)
	}
	if code != exit.Failed || !strings.HasPrefix(stderr, "Error: 20000 errors, ") {
		t.Errorf("exit code %d, errors %q", code, stderr)
	}
	stdout, _, _ = clitest.Execute(t, New, manifest, "lint", "-", "-o", "json")
	var report lintReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Findings) != 20_000 {
		t.Errorf("%d findings in JSON: %v", len(report.Findings), err)
	}
}

// All examples are clean, so that users can start from them.
func TestExamples(t *testing.T) {
	manifests, err := filepath.Glob("../../../examples/*/*.yaml")
	expect.NoError(t, err)
	var folders []string
	for _, manifest := range manifests {
		folders = append(folders, filepath.Dir(manifest))
	}
	folders = append(slices.Compact(folders), "../../../examples/recipes")
	stdout, stderr, code := clitest.Execute(t, New, "", append([]string{"lint", "--fail-on", "warning"}, folders...)...)
	if code != exit.OK || stdout != "" || strings.Contains(stderr, " 0 objects checked") {
		t.Errorf("lint %v: exit code %d, errors %q, output:\n%s", folders, code, stderr, stdout)
	}
}
