// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package get implements `seamark get`, which lists the probes of pods with their states.
package get

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

const long = `List the probes of PodProbeMarkers in pods, with their states.

The state of a probe is Succeeded, Failed, Unknown (the container is new), or Pending if it has
no result yet. It is "-" if only the reports of the agents have it and you may not read them.
SINCE is the time since the state changed. MESSAGE is the last message of the probe, or why it
has no current result.

States come from the reports of the agents. If you may not read these, they come from the
conditions and labels that Seamark has set on the pods, and a hint on standard error names the
missing permission. The command needs the permission to list pods and podprobemarkers.

With --watch, a terminal shows the current table until you press q or Ctrl-C. Elsewhere, and with
--watch-only or another output format, each change is appended: as a row, or as one object
that is not in a list. This needs the permission to watch what is listed. A watch that is
interrupted is started again. --request-timeout limits the time of the watch as a whole.

Exit codes: 0 for success, also if you end a watch or --request-timeout does; 1 if a named
pod or marker does not exist or a request failed; 2 for bad input; 3 if the cluster cannot be
reached, or pods or markers cannot be read.`

// The placeholders are the name of the program.
const example = `  # List the probes of all pods in the namespace
  %[1]s get

  # List the probes that fail in any namespace, with nodes and marks
  %[1]s get -A --state failed -o wide

  # List the probes of one marker in the pods of one node
  %[1]s get -m game --node worker-1

  # Watch the probes that fail
  %[1]s get --state failed --watch

  # Print the state of one probe
  %[1]s get game-0 -m game#idle -o jsonpath='{.items[0].state}'`

// options are the arguments and the flags of `seamark get`, which New describes, and what Complete makes
// of them.
type options struct {
	genericiooptions.IOStreams
	Cluster          *cluster.Flags
	Output           printing.Flags
	Pods, States     []string
	Marker, Node     string
	Selector         cluster.Selector
	Watch, WatchOnly bool

	selector labels.Selector
	selected identity.ID
	states   []string
	connect  func() (cluster.Connection, error)
	now      func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&options{IOStreams: streams, Cluster: flags, connect: flags.Connect, now: time.Now}, program)
}

func newCommand(o *options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:        "get [POD...]",
		Short:      "List the probes of pods with their states",
		SuggestFor: []string{"list", "ls"},
		Long:       long,
		Example:    fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.Marker, "marker", "m", "", "list only the probes of this marker, or one probe of it as MARKER#PROBE")
	flags.StringVar(&o.Node, "node", "", "list only the pods of this node")
	o.Selector.AddTo(command)
	flags.BoolVarP(&o.Watch, "watch", "w", false, "list the probes, then watch for changes")
	flags.BoolVar(&o.WatchOnly, "watch-only", false, "watch for changes without listing the probes first")
	flags.StringSliceVar(&o.States, "state", nil, "list only the probes in these states: "+strings.Join(stateNames(), ", ")+" (separated by commas)")
	o.Output.AddTo(command)
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 0)
	o.Cluster.CompleteNames(command, "marker", permission.Markers)
	o.Cluster.CompleteNames(command, "node", permission.Nodes)
	cluster.CompleteValues(command, "state", stateNames())
	return command
}

// Complete parses and validates the arguments and the flags.
func (o *options) Complete(args []string) error {
	var err error
	if o.Pods, err = o.Cluster.PodNames(args); err != nil {
		return err
	}
	if o.selector, err = o.Selector.Parse(); err != nil {
		return err
	}
	if o.selected, err = identity.ParseSelection(o.Marker); err != nil {
		return fmt.Errorf("--marker: %w", err)
	}
	o.states = nil
	for _, name := range o.States {
		state := strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(stateNames(), state) {
			return fmt.Errorf("--state: %q is invalid: must be %s", name, strings.Join(stateNames(), ", "))
		}
		o.states = append(o.states, state)
	}
	return o.Output.Validate()
}

// Run prints the probes.
func (o *options) Run(ctx context.Context) error {
	connection, err := o.connect()
	if err != nil {
		return err
	}
	if o.Watch || o.WatchOnly {
		return o.watch(ctx, connection)
	}
	snapshot, err := cluster.Read(ctx, connection.Client, o.query(connection.Namespace))
	if err != nil {
		return err
	}
	if err := o.check(snapshot, connection.Namespace); err != nil {
		return err
	}
	absent := snapshot.AbsentError(ctx, connection.Client, connection.Namespace)
	snapshot.Now = o.now()
	current := probestatus.List(snapshot.Input)
	for _, warning := range warnings(current) {
		fmt.Fprintln(o.ErrOut, warning)
	}
	if hint := snapshot.Hint(); hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	rows := o.filter(current.Rows)
	if len(rows) == 0 && o.Output.IsTable() {
		if absent == nil {
			fmt.Fprintln(o.ErrOut, o.nothing(snapshot, current, connection.Namespace))
		}
		return absent
	}
	if err := o.Output.Print(o.Out, result(rows, o.Cluster.AllNamespaces, o.now())); err != nil {
		return exit.Failure(err)
	}
	return absent
}

func (o *options) query(namespace string) cluster.Query {
	return cluster.Query{Namespace: namespace, Names: o.Pods, Selector: o.selector, Node: o.Node, Guards: true}
}

// check returns an error if the rows cannot be computed, or the named marker does not exist.
func (o *options) check(snapshot *cluster.Snapshot, namespace string) error {
	if err := snapshot.Require(permission.Required()...); err != nil {
		return err
	}
	name, probe := o.selected.Marker, o.selected.Probe
	if name == "" {
		return nil
	}
	var markers, probes []string
	for _, m := range snapshot.Markers {
		markers = append(markers, m.Name)
		if m.Name == name {
			for i := range m.Spec.Probes {
				probes = append(probes, m.Spec.Probes[i].Name)
			}
		}
	}
	if !slices.Contains(markers, name) {
		return cluster.NotFound("PodProbeMarker", name, markers, cluster.Where(namespace))
	}
	if probe != "" && !slices.Contains(probes, probe) {
		return cluster.NotFound("probe", probe, probes, " in PodProbeMarker "+name)
	}
	return nil
}

// nothing says why no probes are listed.
func (o *options) nothing(snapshot *cluster.Snapshot, current probestatus.States, namespace string) string {
	switch {
	case len(snapshot.Markers) == 0:
		return "No PodProbeMarkers found" + cluster.Where(namespace) + "."
	case len(snapshot.Pods) == 0:
		return "No pods found" + cluster.Where(namespace) + "."
	case len(current.Rows) == 0:
		return "No PodProbeMarker selects these pods" + cluster.Where(namespace) + "."
	default:
		return "No probes match the flags" + cluster.Where(namespace) + "."
	}
}
