// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree implements `seamark tree`, which shows workloads with their revisions, pods, probes
// and marks.
package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2/tree"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const long = `Show workloads with their revisions, pods, probes and marks.

A workload is the controller of pods: a Deployment, StatefulSet, DaemonSet, CloneSet, Job or any
other kind. Without an argument, all workloads of the namespace are shown that have pods.

Exit codes: 0 for success; 1 if a named workload has no pods or a request failed; 2 for bad input;
3 if the cluster cannot be reached, or pods or markers cannot be read.`

// The placeholders are the name of the program.
const example = `  # Show the pods of a StatefulSet with their roles, by revision
  %[1]s tree statefulset/database

  # Show all workloads with these labels in any namespace
  %[1]s tree -A -l app=game`

// options are the argument and the flags of `seamark tree`, which New describes.
type options struct {
	genericiooptions.IOStreams
	Cluster  *cluster.Flags
	Workload string
	Selector cluster.Selector
	Output   printing.Flags

	connect func() (cluster.Connection, error)
	now     func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&options{IOStreams: streams, Cluster: flags, connect: flags.Connect, now: time.Now}, program)
}

func newCommand(o *options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "tree [WORKLOAD]",
		Short:   "Show workloads with their revisions, pods, probes and marks",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Workload = args[0]
			}
			if err := o.Output.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Selector.AddTo(command)
	o.Output.AddTo(command)
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompleteObjects(command, false, 1)
	return command
}

// Run reads the pods with their states and prints the workloads.
func (o *options) Run(ctx context.Context) error {
	selector, err := o.Selector.Parse()
	if err != nil {
		return err
	}
	connection, err := o.connect()
	if err != nil {
		return err
	}
	query := cluster.Query{Namespace: connection.Namespace, Selector: selector, Controllers: true, Guards: true}
	snapshot, err := cluster.Read(ctx, connection.Client, query)
	if err != nil {
		return err
	}
	if err := snapshot.Require(permission.Required()...); err != nil {
		return err
	}
	if hint := snapshot.Hint(); hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	snapshot.Now = o.now()
	workloads := build(snapshot.Pods, probestatus.List(snapshot.Input))
	where := cluster.Where(connection.Namespace)
	if o.Workload != "" {
		all := workloads
		workloads = slices.DeleteFunc(slices.Clone(all), func(w Workload) bool { return !selects(o.Workload, w) })
		if len(workloads) == 0 {
			return cluster.NotFound("workload with pods", o.Workload, namesOf(all, o.Workload), where)
		}
	}
	return exit.Failure(o.print(workloads, where))
}

// namesOf returns the names of the workloads as the user has written the name: with or without kinds.
func namesOf(workloads []Workload, like string) []string {
	var names []string
	for _, w := range workloads {
		name := w.Name
		if name == "" {
			continue
		}
		if strings.Contains(like, "/") {
			name = strings.ToLower(w.Kind) + "/" + w.Name
		}
		names = append(names, name)
	}
	return names
}

// maxMessage is the maximum length of a message in a line, in bytes.
const maxMessage = 80

func (o *options) print(workloads []Workload, where string) error {
	if o.Output.IsTable() {
		if len(workloads) == 0 {
			fmt.Fprintln(o.ErrOut, "No pods found"+where+".")
		}
		painter := printing.NewPainter(o.Out)
		for _, w := range workloads {
			if _, err := fmt.Fprintln(printing.Raw(o.Out), o.draw(w, painter)); err != nil {
				return fmt.Errorf("print the tree: %w", err)
			}
		}
		return nil
	}
	result := printing.Result{Object: func() runtime.Object { return printing.NewList("WorkloadTreeList", workloads) }}
	for _, w := range workloads {
		if w.Name != "" {
			result.Names = append(result.Names, strings.ToLower(w.Kind)+"/"+w.Name)
		}
	}
	return o.Output.Print(o.Out, result)
}

// draw returns the tree of a workload, whose lines are safe for a terminal.
func (o *options) draw(w Workload, painter printing.Painter) *tree.Tree {
	title := w.Kind + "/" + w.Name
	if w.Name == "" {
		title = "pods without a controller"
	}
	if o.Cluster.AllNamespaces {
		title = w.Namespace + " " + title
	}
	root := tree.Root(text.Line(title))
	for _, r := range w.Revisions {
		parent := root
		if r.Name != "" {
			parent = tree.Root(text.Line(fmt.Sprintf("revision %s (%d)", strings.TrimPrefix(r.Name, w.Name+"-"), len(r.Pods))))
			root.Child(parent)
		}
		for _, pod := range r.Pods {
			parent.Child(o.drawPod(pod, painter))
		}
	}
	return root
}

func (o *options) drawPod(pod Pod, painter printing.Painter) *tree.Tree {
	phase := string(pod.Phase)
	if pod.Terminating {
		phase = "Terminating"
	}
	line := strings.TrimSpace(strings.Join([]string{pod.Name, phase, pod.Node}, "  "))
	if pod.Guard != nil {
		line += "  guarded by " + pod.Guard.Text(o.now())
	}
	t := tree.Root(text.Safe(line))
	for i := range pod.Probes {
		row := &pod.Probes[i]
		line := text.Line(identity.ID{Marker: row.Marker, Probe: row.Probe}.String()) + "  " + painter.Word(row.Shown())
		if !row.LastTransitionTime.IsZero() {
			line += "  " + duration.HumanDuration(o.now().Sub(row.LastTransitionTime.Time))
		}
		message := row.Message
		if row.Problem != nil {
			message += " (" + row.Problem.Message + ")"
		}
		if message = text.Line(message); message != "" {
			line += "  " + text.Truncate(message, maxMessage)
		}
		probe := tree.Root(line)
		for _, m := range row.Marks {
			probe.Child(text.Line(fmt.Sprintf("%s %s", m.Kind, m)))
		}
		t.Child(probe)
	}
	return t
}
