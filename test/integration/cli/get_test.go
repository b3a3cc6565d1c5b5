// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
)

var blanks = regexp.MustCompile(` +`)

// columns returns the lines of a table with single blanks and without durations.
func columns(table, node string) []string {
	table = strings.ReplaceAll(table, node, "NODE")
	table = regexp.MustCompile(`\b\d+[smh]\b`).ReplaceAllString(table, "TIME")
	return strings.Split(strings.TrimSpace(blanks.ReplaceAllString(table, " ")), "\n")
}

func TestGet(t *testing.T) {
	w := newWorld(t)
	header := "POD PROBE CONTAINER STATE SINCE MESSAGE NODE LAST PROBE SOURCE MARKS"
	hint := "Hint: no permission to list probereports.seamark.dev in the cluster: states come from the marks of pods; ask for: "
	for name, test := range map[string]struct {
		args   []string
		want   []string
		stderr string
		code   int
	}{
		"administrator": {[]string{"get", "-o", "wide"}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME report game.io/idle=True,role=idle",
			"game-1 game#idle main Pending - - NODE - - -",
		}, "", exit.OK},
		"developer": {[]string{"get", "-o", "wide", "--as=" + developer}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME condition game.io/idle=True,role=idle",
			"game-1 game#idle main Pending - - NODE - - -",
		}, hint, exit.OK},
		"viewer of states": {[]string{"get", "-o", "wide", "--as=" + viewer}, []string{
			header,
			"game-0 game#idle main Succeeded TIME no players NODE TIME report game.io/idle=True,role=idle",
			"game-1 game#idle main Pending - - NODE - - -",
		}, "", exit.OK},
		"by node": {[]string{"get", "--node", w.node, "--state=succeeded", "-o", "name"}, []string{"pod/game-0"}, "", exit.OK},
		"user without permissions": {[]string{"get", "--as=nobody"}, []string{""},
			"Error: no permission to list podprobemarkers.apps.kruise.io in namespace " + w.namespace + "; ask for: kubectl create rolebinding", exit.Access},
		"no API server":      {[]string{"get", "--server=https://127.0.0.1:1"}, []string{""}, "connection refused", exit.Access},
		"unknown context":    {[]string{"get", "--context=none"}, []string{""}, `context "none" does not exist`, exit.Access},
		"completion of pods": {[]string{"__complete", "get", "game-0", "game", "--as=" + developer}, nil, "", exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			if test.args[0] == "__complete" {
				w.complete(t)
				return
			}
			stdout, stderr, code := w.run(t, test.args...)
			expect.Equal(t, test.want, columns(stdout, w.node), "output")
			if code != test.code || !strings.Contains(stderr, test.stderr) || (test.stderr == "") != (stderr == "") {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", code, test.code, stderr, test.stderr)
			}
		})
	}
}

// complete checks what a shell completes for a developer.
func (w world) complete(t *testing.T) {
	t.Helper()
	flags := []string{"--kubeconfig=" + w.kubeconfig, "--namespace=" + w.namespace, "--as=" + developer}
	for typed, want := range map[string][]string{
		"game-0 game":  {"game-1"},
		"--marker g":   {"game"},
		"--state fai":  {"failed"},
		"--state=un":   {"unknown"},
		"--output js":  {"wide", "json", "yaml", "name", "jsonpath=", "go-template="},
		"--node node-": nil,
	} {
		stdout := w.completions(t, append(flags, strings.Fields(typed)...))
		expect.Equal(t, want, stdout, "completion of %q", typed)
	}
}
