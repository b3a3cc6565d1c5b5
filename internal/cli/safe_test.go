// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
)

// The names of fields, objects and files are those of manifests, and errors contain them too.
func TestManifestsAreSafe(t *testing.T) {
	// YAML permits the others only as escape sequences.
	quoted := strconv.QuoteToASCII(texttest.Hostile)
	marker := strings.Replace(clitest.BadMarker, "spec:", fmt.Sprintf("spec:\n  %s: 1", quoted), 1)
	pod := strings.Replace(clitest.OnePod, "spec:", fmt.Sprintf("spec:\n  %s: 1", quoted), 1)
	for name, test := range map[string]struct {
		in   string
		args []string
	}{
		"lint":                   {marker, []string{"lint", "-"}},
		"local":                  {pod, []string{"local", "-f", "-", "--strict"}},
		"migrate check":          {strings.Replace(clitest.BadMarker, "{name: worker}", "{name: "+quoted+"}", 1), []string{"migrate", "check", "-f", "-"}},
		"name of a file":         {"", []string{"lint", texttest.Hostile + texttest.Invalid}},
		"flag":                   {"", []string{"local", "-f", "-", "--until", texttest.Hostile}},
		"command":                {"", []string{texttest.Hostile}},
		"name of an output":      {"", []string{"top", "-o", texttest.Hostile}},
		"name of a marker in -m": {"", []string{"get", "-m", "a/b/" + texttest.Hostile}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, _ := execute(t, test.in, test.args...)
			texttest.Check(t, stdout+stderr)
		})
	}
}

// Lines with colors bypass the writer of commands.
func TestColorsAreSafe(t *testing.T) {
	marker := strings.Replace(clitest.BadMarker, "spec:", fmt.Sprintf("spec:\n  %s: 1", strconv.QuoteToASCII(texttest.Hostile)), 1)
	clitest.CheckColors(t, func(out io.Writer) error {
		command := New(genericiooptions.IOStreams{In: strings.NewReader(marker), Out: printing.Raw(out), ErrOut: io.Discard}, "seamark", "v1")
		command.SetArgs([]string{"lint", "-"})
		if err := command.ExecuteContext(t.Context()); exit.Code(err) != exit.Failed {
			return err
		}
		return nil
	})
}

// The writer of commands must not change the scripts of shells.
func TestCompletionsAreSafe(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var script bytes.Buffer
		streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &script, ErrOut: &script}
		command := New(streams, "seamark", "v1")
		command.SetOut(&script)
		command.SetArgs([]string{"completion", shell})
		if err := command.ExecuteContext(t.Context()); err != nil || text.Safe(script.String()) != script.String() {
			t.Errorf("completion of %s is not safe, %v", shell, err)
		}
	}
}
