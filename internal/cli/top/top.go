// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package top implements `seamark top`, which shows the probes that did not run, run slowly, flap or fail, and the rollouts of sets.
package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Options are the flags of `seamark top`, which New describes.
type Options struct {
	genericiooptions.IOStreams
	Flags    *cluster.Flags
	Node     string
	Selector cluster.Selector
	Rows     int
	Window   time.Duration
	Output   printing.Report
	Watch    bool
	Now      func() time.Time

	// Program and Version are how the program was called, and its version. connectionFlags are those with
	// which a watch runs other commands.
	Program, Version string
	connectionFlags  []string
}

const long = `Show the probes that did not run, run slowly, flap or fail, by marker and node, the
worst ones first: by probes that did not run, then by slow ones, by changes per hour, and by
failed ones. Markers without any of these are not shown. A failed probe is not always a problem:
many probes report a state, such as idle.

Below them are the CloneSets, StatefulSets and DaemonSets of apps.kruise.io with their rollouts,
those with problems first, then those in progress, unless --node or --selector selects pods.

Changes are counted from the events of the pods, which the API server keeps for an hour by
default. If an event combines several changes, those within the window are estimated.

With --watch, a terminal shows the current table until you press q or Ctrl-C. Other keys show
more about the worst probe of the selected row: e is "seamark explain", t "seamark timeline",
l the logs of the container, and x or r "seamark test", which runs the probe once. On a set, e is
"seamark explain". Esc returns to the table. --watch needs the permission to watch what is listed;
"seamark get --watch" also works without a terminal.`

const example = `  # The worst 20 in all namespaces
  seamark top -A

  # The worst 5 on one node, with changes of the last 10 minutes
  seamark top -A --node node-1 -N 5 --window 10m

  # Follow the worst ones, and explain or test them with keys
  seamark top --watch`

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	o := &Options{
		IOStreams: streams, Flags: cluster.NewFlags(streams, version), Now: time.Now,
		Rows: 20, Window: time.Hour, Output: printing.Text, Program: program, Version: version,
	}
	command := &cobra.Command{
		Use:     "top",
		Short:   "Show the probes that did not run, run slowly, flap or fail, and the rollouts of sets",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			o.connectionFlags = connectionFlags(cmd)
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	o.Flags.AddAllNamespaces(command)
	flags := command.Flags()
	flags.StringVar(&o.Node, "node", "", "show only pods on this node")
	o.Selector.AddTo(command)
	flags.IntVarP(&o.Rows, "rows", "N", o.Rows, fmt.Sprintf("maximum number of rows of each table; at most %d sets are shown", model.MaxSets))
	flags.DurationVar(&o.Window, "window", o.Window, "how far back changes count")
	flags.BoolVarP(&o.Watch, "watch", "w", false, "update the table on the terminal; keys explain and test the selected row")
	o.Flags.CompleteNames(command, "node", permission.Nodes)
	o.Output.AddTo(command)
	return command
}

// Validate checks the flags.
func (o *Options) Validate() error {
	errs := []error{o.Output.Validate()}
	if o.Rows < 1 {
		errs = append(errs, fmt.Errorf("--rows: %d is invalid: must be 1 or more", o.Rows))
	}
	if o.Window <= 0 {
		errs = append(errs, fmt.Errorf("--window: %s is invalid: must be more than 0", o.Window))
	}
	if o.Watch && o.Output != printing.Text {
		errs = append(errs, fmt.Errorf("--output: %q is invalid: must be text with --watch", o.Output))
	}
	if o.Watch && !printing.HasScreen(o.Out) {
		errs = append(errs, errors.New(`--watch: the output must be a terminal; "seamark get --watch" prints changes elsewhere`))
	}
	return errors.Join(errs...)
}

// Run reads the states and events and prints the worst groups.
func (o *Options) Run(ctx context.Context) error {
	selector, err := o.Selector.Parse()
	if err != nil {
		return err
	}
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	query := cluster.Query{Namespace: connection.Namespace, Node: o.Node, Selector: selector, Guards: true}
	if o.Watch {
		return live.Session(ctx, connection, query, o.watch)
	}
	snapshot, events, err := cluster.ReadHistory(ctx, connection.Client, query, o.ErrOut)
	if err != nil {
		return err
	}
	snapshot.Now = o.Now()
	all, err := o.readSets(ctx, connection.Client, connection.Namespace)
	if err != nil {
		return err
	}
	groups := history.Top(probestatus.List(snapshot.Input).Rows, events, snapshot.Now, o.Window)
	more := max(len(groups)-o.Rows, 0)
	groups = groups[:len(groups)-more]
	sets, moreSets := o.firstSets(all)
	report := map[string]any{"groups": append([]history.Group{}, groups...), "omitted": more, "sets": sets, "omittedSets": moreSets}
	return exit.Failure(o.Output.Print(o.Out, report, func(out io.Writer) error {
		return errors.Join(printGroups(out, groups, more), printSets(out, sets, moreSets))
	}))
}

// maxMessage is the maximum length of a message in a row, in bytes.
const maxMessage = 80

func printGroups(out io.Writer, groups []history.Group, more int) error {
	lines := groupLines(groups, more, printing.HasColors(out, os.Getenv))
	if _, err := io.WriteString(printing.Raw(out), strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

// groupLines returns the lines of the table, safe for a terminal. With colors, counts of probes with a problem have one.
func groupLines(groups []history.Group, more int, colors bool) []string {
	if len(groups) == 0 {
		return []string{"All probes run, and none has failed or changed."}
	}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tMARKER\tNODE\tPROBES\tNOT RUN\tSLOW\tCHANGES/H\tFAILED\tWORST")
	for _, g := range groups {
		worst := g.Worst
		if g.Guard != "" {
			worst += " (guarded by " + g.Guard + ")"
		}
		if g.Message != "" {
			worst += ": " + text.Truncate(strings.Join(strings.Fields(g.Message), " "), maxMessage)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%.1f\t%d\t%s\n",
			g.Namespace, g.Marker, g.Node, g.Probes, g.NotRun, g.Slow, g.PerHour, g.Failed, worst)
	}
	if more > 0 {
		fmt.Fprintf(table, "%d more: use --rows\n", more)
	}
	// A buffer accepts everything.
	_ = table.Flush()
	lines := linesOf(out.String())
	if colors {
		for i := range groups {
			lines[i+1] = paintCounts(lines[0], lines[i+1])
		}
	}
	return lines
}

// paintCounts colors the counts other than 0 in a line of the table: those of probes that did not run or failed as failures,
// and those of slow ones as warnings.
func paintCounts(header, line string) string {
	// From right to left, the places of the others stay.
	for _, column := range []struct{ title, like string }{{"FAILED", "failed"}, {"SLOW", "warning"}, {"NOT RUN", "failed"}} {
		start := strings.Index(header, column.title)
		if start >= len(line) {
			continue
		}
		count, rest, _ := strings.Cut(line[start:], " ")
		if n, err := strconv.Atoi(count); err == nil && n > 0 {
			line = line[:start] + printing.Style(column.like).Render(count) + " " + rest
		}
	}
	return line
}
