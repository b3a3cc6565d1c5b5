// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// The version of the program is known without a cluster.
func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"version", "--client"}} {
		stdout, stderr, code := execute(t, "", args...)
		if want := "seamark v1.2.3 ("; !strings.HasPrefix(stdout, want) || strings.Count(stdout, "\n") != 1 || stderr != "" || code != exit.OK {
			t.Errorf("%q: printed %q and %q with exit code %d, want a line that starts with %q", args, stdout, stderr, code, want)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for format, want := range map[string]string{
		"text": "seamark v1.2.3 (", "json": "{\n  \"clientVersion\": {\n    \"gitVersion\": \"v1.2.3\"", "yaml": "clientVersion:\n  gitVersion: v1.2.3\n",
	} {
		stdout, stderr, code := execute(t, "", "version", "-o", format)
		if !strings.HasPrefix(stdout, want) || strings.Contains(stdout, "erver") || !strings.Contains(stderr, "no kubeconfig found") || code != exit.Access {
			t.Errorf("%s: printed %q and %q with exit code %d, want %q", format, stdout, stderr, code, want)
		}
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
		if err := command.ExecuteContext(t.Context()); exit.Code(err) != exit.Failed {
			t.Errorf("unknown command: error %v", err)
		}
		text := `unknown command "lokal" for "` + want + `"; did you mean "local"?` + "\nSee '" + want + " --help' for usage.\n"
		if !strings.Contains(errOut.String(), text) {
			t.Errorf("error of %s does not contain %q:\n%s", program, text, errOut)
		}
	}
}

// Help lists the flags of a command. Those of all commands that use a cluster are listed once.
func TestHelp(t *testing.T) {
	options, _, code := execute(t, "", "options")
	if code != exit.OK || !strings.Contains(options, "--kubeconfig string") || strings.Contains(options, "cache-dir") {
		t.Errorf("options with exit code %d:\n%s", code, options)
	}
	const hint = `Use "seamark options" for a list of global command-line options`
	for command, usesCluster := range map[string]bool{
		"": true, "get": true, "migrate": true, "rollout status": true, "lint": false, "init": false, "local": false, "completion bash": false,
	} {
		for _, args := range [][]string{append(strings.Fields(command), "--help"), append([]string{"help"}, strings.Fields(command)...)} {
			help, _, code := execute(t, "", args...)
			if code != exit.OK || strings.Contains(help, "--kubeconfig ") || strings.Contains(help, hint) != usesCluster || !strings.Contains(help, "--help") {
				t.Errorf("%q: exit code %d:\n%s", args, code, help)
			}
		}
	}
	for _, args := range [][]string{{"rollout", "status", "clones"}, {"set", "image", "clones"}, {"tree", "clones"}} {
		stdout, _, _ := execute(t, "", append([]string{"__complete"}, args...)...)
		// Neither a blank after the kind nor names of files.
		expect.Equal(t, fmt.Sprintf("completion of %q", args), "cloneset/\n:6\n", stdout)
	}
	if flags, _, _ := execute(t, "", "__complete", "get", "--kube"); !strings.HasPrefix(flags, "--kubeconfig") {
		t.Errorf("completed %q", flags)
	}
}

// Bad input gives exit code 2, and an unknown command, and bad input of a command of kubectl, 1, and an error that names it. Nothing is run.
func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	for name, test := range map[string]struct {
		args  []string
		input string
		want  string
	}{
		"unknown command":         {args: []string{"locale"}, want: `unknown command "locale" for "seamark"; did you mean "local"?`},
		"no similar command":      {args: []string{"foo"}, want: "unknown command \"foo\" for \"seamark\"\nSee 'seamark --help' for usage.\n"},
		"other name of a command": {args: []string{"list"}, want: `unknown command "list" for "seamark"; did you mean "get"?`},
		"start of commands":       {args: []string{"ti"}, want: `; did you mean "timeline"?`},
		"unknown subcommand":      {args: []string{"rollout", "stauts"}, want: `unknown command "stauts" for "seamark rollout"; did you mean "status"?`},
		"unknown shell":           {args: []string{"completion", "bsh"}, want: `unknown command "bsh" for "seamark completion"; did you mean "bash"?`},
		"unknown help": {
			args: []string{"help", "lnt"}, want: "unknown command \"lnt\" for \"seamark\"; did you mean \"lint\"?\nSee 'seamark --help'",
		},
		"help of too much": {args: []string{"help", "lint", "x"}, want: `unknown command "x" for "seamark lint"`},
		"unknown flag": {
			args: []string{"get", "--stat", "x"}, want: "unknown flag: --stat; did you mean \"--state\"?\nSee 'seamark get --help' for usage.\n",
		},
		"unknown command, flag":    {args: []string{"lokal", "-n", "x"}, want: `unknown command "lokal" for "seamark"; did you mean "local"?`},
		"unknown subcommand, flag": {args: []string{"rollout", "statu", "x", "-n", "y"}, want: `for "seamark rollout"; did you mean "status"?`},
		"flag of a group":          {args: []string{"set", "-n", "y"}, want: "unknown shorthand flag: 'n' in -n\nSee 'seamark set --help'"},
		"flag of wait":             {args: []string{"wait", "--tiemout=1s"}, want: `did you mean "--timeout"?` + "\nSee 'seamark wait --help'"},
		"unknown shorthand":        {args: []string{"get", "-z"}, want: "unknown shorthand flag: 'z' in -z\nSee 'seamark get --help'"},
		"one hyphen":               {args: []string{"get", "-kubeconfg=x"}, want: `did you mean "--kubeconfig"?`},
		"one letter":               {args: []string{"explain", "-A", "x"}, want: "unknown shorthand flag: 'A' in -A\nSee 'seamark explain --help'"},
		"flag of no command":       {args: []string{"version", "--short"}, want: "unknown flag: --short\nSee"},
		"connection of lint":       {args: []string{"lint", "--kubeconfig=x"}, want: "unknown flag: --kubeconfig\nSee"},
		"connection of init":       {args: []string{"init", "--kubeconfig=x"}, want: "unknown flag: --kubeconfig\nSee"},
		"connection of local":      {args: []string{"local", "--kubeconfig=x"}, want: "unknown flag: --kubeconfig\nSee"},
		"too many arguments":       {args: []string{"tree", "a", "b"}, want: "See 'seamark tree --help' for usage.\n"},
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
		"invalid YAML":          {args: []string{"local", "-f", "-"}, input: "a: b: c", want: "standard input:1:1: invalid YAML"},
		"no pods":               {args: []string{"local", "-f", "-"}, input: "", want: "no pods"},
		"unknown field":         {args: []string{"local", "-f", "-"}, input: clitest.OnePod + "    comand: [x]\n", want: "comand"},
		"several invalid flags": {args: []string{"local", "-o", "x"}, want: "--output: \"x\" is invalid: must be text or json"},
		"unsupported field, strict": {
			args: []string{"local", "-f", "-", "--strict"}, input: clitest.OnePod + "  hostPID: true\n",
			want: "\n  standard input:10:3: Pod web: spec.hostPID\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, test.input, test.args...)
			want := exit.Usage
			if strings.HasPrefix(stderr, "Error: unknown command ") || slices.Contains([]string{"rollout", "set", "wait"}, test.args[0]) {
				want = exit.Failed
			}
			expect.Equal(t, "exit code", want, code)
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
		{[]string{"migrate", "check"}, "Checked 1 PodProbeMarker", exit.OK},
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
