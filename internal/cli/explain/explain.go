// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain implements `seamark explain`, which says why a pod is or is not marked, what a marker does, and what a set
// or a job waits for. It reads what package explanation explains, and prints the result.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const long = `Explain step by step why a pod is or is not marked: whether the pod can be probed, which
PodProbeMarkers match and why others do not, the container and the port of each probe, the plan
of the node, its agent, what the agent reported, and the marks. Each step has the values that
show it. The last line is the first problem with the command to run next, or the marks.

Each step is one of these:

  ok       as it should be
  problem  something is wrong
  waiting  not complete yet, and nothing is known to be wrong
  unknown  not checked, because a permission is missing
  info     prevents no mark

With KIND/NAME, explain instead what a set or a job of apps.kruise.io waits for. The kinds are
%s.
The steps are its conditions, the nodes without a pod, those that do not fit, the pods that are not
as they should be, and its runs. A permission that is missing makes a step unknown.

A PodProbeMarker, and a workload of Kubernetes itself, are explained by the marks of their pods:
%s.
The steps are the pods, the markers that match them, the agents of their nodes, and for each probe
how many pods are in which state, and why others have none.

With --for delete or --for evict, explain instead whether a pod can be deleted or evicted now, later
(and what frees it), or never (and why); and with "drain NODE", the same of all pods of a node, as
"kubectl drain" evicts them. This needs the permission to list poddisruptionbudgets.

For a pod, the command needs the permission to get the pod and to list podprobemarkers. Without the
permissions for the node, its plan and its reports, it explains the rest, and takes the states
from the conditions of the pod. It changes nothing.

Exit codes: 0 if the pod is marked as it should be, nothing is wrong with the set or the job and
it waits for nothing, or all pods can go now; 1 if something is wrong or still waited for, 2 for bad
input, 3 if the cluster or the object cannot be read.`

// The placeholders are the name of the program.
const example = `  # Explain the marks of a pod
  %[1]s explain worker-0

  # Explain only those of one marker, in another namespace
  %[1]s explain worker-0 -n jobs -m worker

  # Explain which nodes have no pod of a DaemonSet, and why
  %[1]s explain daemonset/node-agent -n jobs

  # Explain why a marker does nothing
  %[1]s explain podprobemarker/worker -n jobs

  # Explain whether a pod can be deleted, and a node be drained
  %[1]s explain worker-0 -n jobs --for delete
  %[1]s explain drain node-1

  # Print the problems
  %[1]s explain worker-0 -o json | jq '.steps[] | select(.verdict == "problem")'`

// Options are the options of `seamark explain`.
type Options struct {
	genericiooptions.IOStreams
	// Cluster are the flags of the connection.
	Cluster *cluster.Flags
	// Pod is the name of the pod, or KIND/NAME of a set or a job.
	Pod string
	// Marker limits the steps to one marker. Empty is all.
	Marker string
	// For is explanation.Delete or explanation.Evict, to explain whether the pod can go. Empty explains its marks.
	For string
	// Node is the node to drain. Pod is empty then.
	Node string
	// SeamarkNamespace is the namespace of Seamark's programs.
	SeamarkNamespace string
	// Output is the format.
	Output printing.Report

	program string
	connect func() (cluster.Connection, error)
	now     func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&Options{IOStreams: streams, Cluster: flags, connect: flags.Connect, now: time.Now}, program)
}

func newCommand(o *Options, program string) *cobra.Command {
	o.program = program
	command := &cobra.Command{
		Use:        "explain POD|KIND/NAME|drain NODE",
		Short:      "Explain why a pod is or is not marked, what a set or a job waits for, or whether pods can go",
		SuggestFor: []string{"describe", "why"},
		Long:       fmt.Sprintf(long, strings.Join(setKinds(), ", "), strings.Join(podKindNames(), ", ")),
		Example:    fmt.Sprintf(example, program),
		Args:       oneObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1:
				o.Pod = strings.TrimPrefix(strings.TrimPrefix(args[0], "pods/"), "pod/")
			case isPod(args[0]):
				o.Pod = args[1]
			default:
				o.Node = args[1]
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.Marker, "marker", "m", "", "explain only the marks of this marker")
	flags.StringVar(&o.For, "for", "", "explain whether the pod can go: "+printing.OneOf(operations()))
	cluster.CompleteValues(command, "for", operations())
	flags.StringVar(&o.SeamarkNamespace, "seamark-namespace", configv1alpha1.DefaultNamespace, "namespace of Seamark's programs")
	o.Output.AddTo(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompleteObjects(command, true, 1)
	o.Cluster.CompleteNames(command, "marker", permission.Markers)
	return command
}

// isPod reports whether the word is the kind of pods.
func isPod(word string) bool { return word == "pod" || word == "pods" }

// oneObject returns an error unless the arguments name one object.
func oneObject(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return errors.New("the name of a pod, or KIND/NAME, is required")
	}
	if kind := args[0]; len(args) == 2 {
		switch {
		case isPod(kind) || kind == string(explanation.Drain):
			return nil
		case kinds.ByName(kind) != nil || podKindByName(kind) != nil:
			return fmt.Errorf("%q is unexpected: must be KIND/NAME%s", args[1], text.Suggestion(kind+"/"+args[1]))
		}
	}
	return fmt.Errorf("%q is unexpected: must be one pod, or one KIND/NAME", args[1])
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	var errs []error
	if o.Pod == "" && o.Node == "" {
		errs = append(errs, fmt.Errorf("name of the pod: %q is invalid: must not be empty", o.Pod))
	}
	if kind, name, found := strings.Cut(o.Pod, "/"); found {
		switch {
		case kinds.ByName(kind) == nil && podKindByName(kind) == nil:
			known := slices.Concat(setKinds(), podKindNames())
			errs = append(errs, fmt.Errorf("kind: %q is invalid: must be pod or one of %s%s", kind, strings.Join(known, ", "),
				text.Suggestion(text.Closest(kind, known))))
		case name == "" || strings.Contains(name, "/"):
			errs = append(errs, fmt.Errorf("name of the %s: %q is invalid: must be one name", kind, name))
		case o.Marker != "":
			errs = append(errs, fmt.Errorf("--marker: %q is invalid: only pods have marks", o.Marker))
		}
	}
	if o.For != "" && (o.Node != "" || strings.Contains(o.Pod, "/")) {
		errs = append(errs, fmt.Errorf("--for: %q is invalid: only of a pod", o.For))
	} else if o.For != "" && !slices.Contains(operations(), o.For) {
		errs = append(errs, fmt.Errorf("--for: %q is invalid: must be %s", o.For, printing.OneOf(operations())))
	}
	if o.Marker != "" && (o.For != "" || o.Node != "") {
		errs = append(errs, fmt.Errorf("--marker: %q is invalid: the marks are not explained", o.Marker))
	}
	if o.SeamarkNamespace == "" {
		errs = append(errs, fmt.Errorf("--seamark-namespace: %q is invalid: must not be empty", o.SeamarkNamespace))
	}
	return errors.Join(append(errs, o.Output.Validate())...)
}

// Run explains the pod. The error of a pod that is not marked does not repeat why.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.connect()
	if err != nil {
		return err
	}
	if o.For != "" || o.Node != "" {
		return o.explainDisruption(ctx, connection)
	}
	if kind, name, found := strings.Cut(o.Pod, "/"); found {
		if other := podKindByName(kind); other != nil {
			return o.explainPods(ctx, connection, other, name)
		}
		return o.explainWorkload(ctx, connection, kinds.ByName(kind), name)
	}
	in, err := o.read(ctx, connection)
	if err != nil {
		return err
	}
	x := explanation.Pod(in)
	if err := o.print(x, x.Answer); err != nil {
		return exit.Failure(err)
	}
	if !x.Marked {
		return exit.Failure(fmt.Errorf("pod %s is not marked as it should be", o.Pod))
	}
	return nil
}

// print prints the explanation with its answer in the requested format.
func (o *Options) print(x any, answer explanation.Answer) error {
	return o.Output.Print(o.Out, x, func(out io.Writer) error {
		// The text is safe already.
		if _, err := io.WriteString(printing.Raw(out), render(answer, printing.HasColors(out, os.Getenv))); err != nil {
			return fmt.Errorf("print explanation: %w", err)
		}
		return nil
	})
}

// render returns the explanation as text: one line per step, its evidence below it, and the
// conclusion with the next command at the end.
func render(x explanation.Answer, colors bool) string {
	var out strings.Builder
	for _, step := range x.Steps {
		verdict := fmt.Sprintf("%-8s", step.Verdict)
		if colors {
			verdict = style(step.Verdict).Render(verdict)
		}
		fmt.Fprintf(&out, "%s %s: %s\n", verdict, text.Line(step.Title), text.Line(step.Text))
		for _, line := range step.Evidence {
			fmt.Fprintf(&out, "           %s\n", text.Line(line))
		}
	}
	conclusion := text.Line(x.Conclusion)
	if colors {
		conclusion = lipgloss.NewStyle().Bold(true).Render(conclusion)
	}
	fmt.Fprintf(&out, "\n%s\n", conclusion)
	if x.Next != "" {
		fmt.Fprintf(&out, "Next: %s\n", text.Line(x.Next))
	}
	return out.String()
}

// style returns the color of a verdict. The words differ too.
func style(verdict planning.Severity) lipgloss.Style {
	color := map[planning.Severity]string{
		explanation.OK: "2", explanation.Problem: "1", explanation.Waiting: "3", explanation.Unknown: "5", explanation.Info: "6",
		explanation.Now: "2", explanation.Never: "1", explanation.Later: "3",
	}[verdict]
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color))
}
