// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestPrintGroups(t *testing.T) {
	groups := []history.Group{
		{Namespace: "game", Marker: "server", Node: "n1", Probes: 3, NotRun: 1, PerHour: 0.25, Worst: "game-0 idle", Message: "CannotRun: no\nprogram"},
		{Namespace: "game", Marker: "idle", Node: "node-2", Probes: 12, Failed: 2, Worst: "game-7 idle", Message: strings.Repeat("x", 200)},
	}
	want := "NAMESPACE  MARKER  NODE    PROBES  NOT RUN  SLOW  CHANGES/H  FAILED  WORST\n" +
		"game       server  n1      3       1        0     0.2        0       game-0 idle: CannotRun: no program\n" +
		"game       idle    node-2  12      0        0     0.0        2       game-7 idle: " + strings.Repeat("x", 80) + "\n" +
		"7 more: use --rows\n"
	var out bytes.Buffer
	expect.NoError(t, printGroups(&out, groups, 7))
	expect.Equal(t, "table", want, out.String())
}

func TestFlags(t *testing.T) {
	streams := genericiooptions.NewTestIOStreamsDiscard()
	flags := cluster.NewFlags(streams, "test")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"rows":   {(&Options{Flags: flags, Window: 1, Output: "text"}).Validate(), "--rows: 0 is invalid: must be 1 or more"},
		"window": {(&Options{Flags: flags, Rows: 1, Output: "text"}).Validate(), "--window: 0s is invalid: must be more than 0"},
		"output": {(&Options{Flags: flags, Rows: 1, Window: 1, Output: "svg"}).Validate(), `--output: "svg" is invalid: must be text, json or yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || test.err.Error() != test.want {
				t.Errorf("error %v, want %s", test.err, test.want)
			}
		})
	}
}

func TestReportIsSafe(t *testing.T) {
	groups := []history.Group{{Marker: "m", Worst: texttest.Hostile, Message: texttest.Hostile}}
	clitest.CheckReport(t, func(out io.Writer, format printing.Report) error {
		return format.Print(out, groups, func(out io.Writer) error { return printGroups(out, groups, 0) })
	})
	groups[0].NotRun, groups[0].Slow, groups[0].Probes = 2, 0, 3
	colored := clitest.CheckColors(t, func(out io.Writer) error { return printGroups(out, groups, 0) })
	if want := "  3       \x1b[31m2\x1b[m        0     0.0        0       "; !strings.Contains(colored, want) {
		t.Errorf("%q does not contain %q", colored, want)
	}
}
