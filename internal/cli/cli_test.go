// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// execute runs a command line and returns its output and exit code.
func execute(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	command := New(streams, "seamark", "v1.2.3")
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), exit.Code(err)
}

func TestVersion(t *testing.T) {
	stdout, _, code := execute(t, "", "version")
	expect.Equal(t, "exit code", exit.OK, code)
	if want := "seamark v1.2.3 ("; !strings.HasPrefix(stdout, want) {
		t.Errorf("printed %q, want a line that starts with %q", stdout, want)
	}
}

// Help and errors name the command that the user can repeat.
func TestProgramName(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/seamark":           "seamark",
		"./bin/kubectl-seamark":            "kubectl seamark",
		"kubectl-seamark.exe":              "kubectl seamark",
		"kubectl seamark":                  "kubectl seamark",
		"/tmp/go-build1/exe/___seamark.pb": "seamark",
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		command := New(streams, program, "v1")
		command.SetArgs([]string{"local", "--help"})
		expect.NoError(t, command.ExecuteContext(t.Context()))
		if text := "\n  " + want + " local (FILE"; !strings.Contains(out.String(), text) {
			t.Errorf("help of %s does not contain %q:\n%s", program, text, out)
		}
		command.SetArgs([]string{"lokal"})
		if err := command.ExecuteContext(t.Context()); exit.Code(err) != exit.Usage {
			t.Errorf("unknown command: error %v", err)
		}
		if text := `unknown command "lokal" for "` + want + `"; did you mean local?` + "\nRun '" + want + " --help' for usage"; !strings.Contains(errOut.String(), text) {
			t.Errorf("error of %s does not contain %q:\n%s", program, text, errOut)
		}
	}
}

// Bad input gives exit code 2 and an error that names it. Nothing is run.
func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct {
		args  []string
		input string
		want  string
	}{
		"unknown command":          {args: []string{"locale"}, want: `unknown command "locale"`},
		"unknown flag":             {args: []string{"version", "--short"}, want: "unknown flag: --short"},
		"missing argument":         {args: []string{"local", "web.yaml"}, want: "web.yaml: no such file"},
		"two standard inputs":      {args: []string{"local", "-f", "-", "-"}, want: "the standard input can be read only once"},
		"empty name of a file":     {args: []string{"migrate", "check", ""}, want: `file name: "" is invalid: must not be empty`},
		"no file":                  {args: []string{"local"}, want: "FILE or --kustomize is required"},
		"missing file":             {args: []string{"local", "-f", folder + "/none.yaml"}, want: "none.yaml: no such file"},
		"folder without manifests": {args: []string{"local", "-f", folder}, want: "no .yaml, .yml or .json file"},
		"output":                   {args: []string{"local", "-f", "-", "-o", "yaml"}, want: `--output: "yaml" is invalid: must be text or json`},
		"address of the web page": {
			args: []string{"local", "-f", "-", "--ui=0.0.0.0:80"}, want: `--ui: "0.0.0.0:80" is invalid: the host must be a loopback address`,
		},
		"negative replicas": {args: []string{"local", "-f", "-", "--replicas", "-1"}, want: "--replicas: -1 is invalid: must be between 0 and 10000"},
		"too many replicas": {
			args: []string{"local", "-f", "-", "--replicas", "999999999"}, want: "--replicas: 999999999 is invalid: must be between 0 and 10000",
		},
		"replicas not a number": {args: []string{"local", "-f", "-", "--replicas", "two"}, want: `"two"`},
		"negative timeout":      {args: []string{"local", "-f", "-", "--timeout", "-1s"}, want: "--timeout: -1s is invalid: must not be negative"},
		"initial above default max": {
			args: []string{"local", "-f", "-", "--crash-loop-initial", "20m"},
			want: "--crash-loop-initial: 20m0s is invalid: must not exceed --crash-loop-max (5m0s)",
		},
		"initial above max": {
			args: []string{
				"local", "-f", "-", "--crash-loop-initial", "2s", "--crash-loop-max", "1s",
			}, want: "--crash-loop-initial: 2s is invalid: must not exceed --crash-loop-max (1s)",
		},
		"malformed expression":  {args: []string{"local", "-f", "-", "--until", "pod/a ready"}, want: `--until: "pod/a ready" is invalid`},
		"invalid YAML":          {args: []string{"local", "-f", "-"}, input: "a: b: c", want: "standard input: document 1"},
		"no pods":               {args: []string{"local", "-f", "-"}, input: "", want: "no pods"},
		"unknown field":         {args: []string{"local", "-f", "-"}, input: clitest.OnePod + "    comand: [x]\n", want: "comand"},
		"several invalid flags": {args: []string{"local", "-o", "x"}, want: "--output: \"x\" is invalid: must be text or json"},
		"unsupported field, strict": {
			args: []string{"local", "-f", "-", "--strict"}, input: clitest.OnePod + "  hostPID: true\n",
			want: "\n  standard input: document 1: Pod web: spec.hostPID\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, test.input, test.args...)
			expect.Equal(t, "exit code", exit.Usage, code)
			if !strings.Contains(stderr, test.want) {
				t.Errorf("standard error %q does not contain %q", stderr, test.want)
			}
			expect.Equal(t, "standard output", "", stdout)
		})
	}
}

// Commands accept files as arguments and with -f.
func TestFilesAreArgumentsOrFlags(t *testing.T) {
	folder := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "marker.yaml"), []byte(clitest.BadMarker), 0o600))
	for _, test := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"lint"}, "containerName: Required value", exit.Failed},
		{[]string{"migrate", "check"}, "Checked 1 PodProbeMarkers", exit.OK},
		{[]string{"local"}, "containerName", exit.Usage},
	} {
		for _, files := range [][]string{{"-"}, {"-f", "-"}, {folder}, {"-f", folder}, {"--filename=" + folder + "/marker.yaml"}} {
			stdout, stderr, code := execute(t, clitest.BadMarker, append(test.args, files...)...)
			if !strings.Contains(stdout+stderr, test.want) || code != test.code {
				t.Errorf("%q %q: exit code %d, want %d; output %q and errors %q, want %q", test.args, files, code, test.code, stdout, stderr, test.want)
			}
		}
	}
}
