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
	"github.com/seamark-dev/seamark/internal/marking/states"
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

// Options are the options of `seamark get`. Complete sets the unexported fields.
type Options struct {
	genericiooptions.IOStreams
	// Cluster and Output are flags that several commands have.
	Cluster *cluster.Flags
	Output  printing.Flags

	// Pods are the names of the pods. If it is empty, all pods are listed.
	Pods []string
	// Marker is the name of a marker, or MARKER#PROBE. Empty is all.
	Marker string
	// Node is the name of a node. Empty is all.
	Node string
	// Selector selects pods by labels, as kubectl does.
	Selector string
	// States are the states to list, in any case. Empty is all.
	States []string
	// Watch continues with changes. WatchOnly lists only changes.
	Watch, WatchOnly bool

	selector labels.Selector
	selected probeid.ID
	states   []string
	connect  func() (cluster.Connection, error)
	now      func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&Options{IOStreams: streams, Cluster: flags, connect: flags.Connect, now: time.Now}, program)
}

func newCommand(o *Options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "get [POD...]",
		Short:   "List the probes of pods with their states",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.Marker, "marker", "m", "", "list only the probes of this marker, or one probe of it as MARKER#PROBE")
	flags.StringVar(&o.Node, "node", "", "list only the pods of this node")
	flags.StringVarP(&o.Selector, "selector", "l", "", "list only the pods with these labels, for example app=game,zone!=a")
	flags.BoolVarP(&o.Watch, "watch", "w", false, "list the probes, then watch for changes")
	flags.BoolVar(&o.WatchOnly, "watch-only", false, "watch for changes without listing the probes first")
	flags.StringSliceVar(&o.States, "state", nil, "list only the probes in these states: "+strings.Join(stateNames(), ", ")+" (separated by commas)")
	o.Output.AddTo(command)
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 0)
	o.Cluster.CompleteMarkers(command, "marker")
	o.Cluster.CompleteNodes(command, "node")
	cluster.CompleteValues(command, "state", stateNames())
	return command
}

// Complete parses the arguments and the flags.
func (o *Options) Complete(args []string) error {
	o.Pods = nil
	for _, name := range args {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "pods/"), "pod/")
		if !slices.Contains(o.Pods, name) {
			o.Pods = append(o.Pods, name)
		}
	}
	var err error
	if o.Selector != "" {
		if o.selector, err = labels.Parse(o.Selector); err != nil {
			return fmt.Errorf("--selector: %q is invalid: %w", o.Selector, err)
		}
	}
	if o.selected, err = probeid.ParseSelection(o.Marker); err != nil {
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
	return nil
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	if len(o.Pods) > 0 && o.Cluster.AllNamespaces {
		return fmt.Errorf("--all-namespaces: must not be used with the name of a pod: %q", o.Pods[0])
	}
	if slices.Contains(o.Pods, "") {
		return fmt.Errorf("name of a pod: %q is invalid: must not be empty", "")
	}
	return o.Output.Validate()
}

// Run prints the probes.
func (o *Options) Run(ctx context.Context) error {
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
	states := probestate.Of(snapshot.Input)
	for _, warning := range warnings(states) {
		fmt.Fprintln(o.ErrOut, warning)
	}
	if hint := snapshot.Hint(); hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	rows := o.filter(states.Rows)
	if len(rows) == 0 && o.Output.IsTable() {
		if absent == nil {
			fmt.Fprintln(o.ErrOut, o.nothing(snapshot, states, connection.Namespace))
		}
		return absent
	}
	if err := o.Output.Print(o.Out, result(rows, o.Cluster.AllNamespaces, o.now())); err != nil {
		return exit.Failure(err)
	}
	return absent
}

func (o *Options) query(namespace string) cluster.Query {
	return cluster.Query{Namespace: namespace, Names: o.Pods, Selector: o.selector, Node: o.Node}
}

// check returns an error if the rows cannot be computed, or the named marker does not exist.
func (o *Options) check(snapshot *cluster.Snapshot, namespace string) error {
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
		return cluster.NotFound("PodProbeMarker", name, markers, where(namespace))
	}
	if probe != "" && !slices.Contains(probes, probe) {
		return cluster.NotFound("probe", probe, probes, " in PodProbeMarker "+name)
	}
	return nil
}

func where(namespace string) string {
	if namespace == "" {
		return " in any namespace"
	}
	return " in namespace " + namespace
}

// nothing says why no probes are listed.
func (o *Options) nothing(snapshot *cluster.Snapshot, states probestate.States, namespace string) string {
	switch {
	case len(snapshot.Markers) == 0:
		return "No PodProbeMarkers found" + where(namespace) + "."
	case len(snapshot.Pods) == 0:
		return "No pods found" + where(namespace) + "."
	case len(states.Rows) == 0:
		return "No PodProbeMarker selects these pods" + where(namespace) + "."
	default:
		return "No probes match the flags" + where(namespace) + "."
	}
}
