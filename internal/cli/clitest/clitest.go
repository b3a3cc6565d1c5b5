// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest runs commands of the program seamark in tests, and checks what they print.
package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// OnePod is a file with a pod that runs for a minute.
	OnePod = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: web
    image: example.com/web
    command: [sleep, "60"]
`
	// BadMarker is a file with an error, a warning and a piece of information.
	BadMarker = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: worker}
spec:
  selector: {matchLabels: {app: worker}}
  probes:
  - name: busy
    container: worker
    probe:
      exec: {command: ["cat /tmp/job"]}
      periodSeconds: 1
    markerPolicy:
    - state: Succeeded
      labels: {busy: "true"}
`
)

// Execute runs a command line of a program that has only one command, and returns its output and exit code.
func Execute(
	t *testing.T, newCommand func(streams genericiooptions.IOStreams, program, version string) *cobra.Command, input string, args ...string,
) (stdout, stderr string, code int) {
	t.Helper()
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	streams.Out, streams.ErrOut = printing.Safe(out), printing.Safe(errOut)
	root := &cobra.Command{Use: "seamark", SilenceUsage: true}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(newCommand(streams, "seamark", "v1.2.3"))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), exit.Code(err)
}

// WriteFiles writes files with their folders.
func WriteFiles(t *testing.T, folder string, contents map[string]string) {
	t.Helper()
	for name, content := range contents {
		path := filepath.Join(folder, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// CheckReport checks a report that contains texttest.Hostile: its text must be safe for a terminal, and its JSON and
// YAML must be exact.
func CheckReport(t *testing.T, report func(out io.Writer, format printing.Report) error) {
	t.Helper()
	var out, encoded bytes.Buffer
	expect.NoError(t, report(printing.Safe(&out), printing.Text))
	texttest.Check(t, out.String())
	for format, decode := range map[printing.Report]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(content []byte, into any) error { return yaml.Unmarshal(content, into) },
	} {
		encoded.Reset()
		expect.NoError(t, report(printing.Safe(&encoded), format))
		var value any
		if err := decode(encoded.Bytes(), &value); err != nil || !strings.Contains(fmt.Sprint(value), texttest.Hostile) {
			t.Errorf("%s is not exact, %v: %v", format, err, value)
		}
	}
}
