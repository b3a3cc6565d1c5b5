// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain implements `seamark explain`, which says why a pod is or is not marked. It reads
// what the package explain in internal explains, and prints the result.
package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	explanation "github.com/seamark-dev/seamark/internal/cli/explanation"
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

The command needs the permission to get the pod and to list podprobemarkers. Without the
permissions for the node, its plan and its reports, it explains the rest, and takes the states
from the conditions of the pod. It changes nothing.

Exit codes: 0 if the pod is marked as it should be, 1 if something is wrong or the pod is still
waiting, 2 for bad input, 3 if the cluster or the pod cannot be read.`

// The placeholders are the name of the program.
const example = `  # Explain the marks of a pod
  %[1]s explain worker-0

  # Explain only those of one marker, in another namespace
  %[1]s explain worker-0 -n jobs -m worker

  # Print the problems
  %[1]s explain worker-0 -o json | jq '.steps[] | select(.verdict == "problem")'`

// The formats of --output.
const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
)

func formats() []string { return []string{formatText, formatJSON, formatYAML} }

// Options are the options of `seamark explain`.
type Options struct {
	genericiooptions.IOStreams
	// Cluster are the flags of the connection.
	Cluster *cluster.Flags
	// Pod is the name of the pod.
	Pod string
	// Marker limits the steps to one marker. Empty is all.
	Marker string
	// SeamarkNamespace is the namespace of Seamark's programs.
	SeamarkNamespace string
	// Output is the format: text, json or yaml.
	Output string

	connect func() (cluster.Connection, error)
	now     func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&Options{IOStreams: streams, Cluster: flags, connect: flags.Connect, now: time.Now}, program)
}

func newCommand(o *Options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "explain POD",
		Short:   "Explain why a pod is or is not marked",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		Args:    onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Complete(args)
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.Marker, "marker", "m", "", "explain only the marks of this marker")
	flags.StringVar(&o.SeamarkNamespace, "seamark-namespace", configv1alpha1.DefaultNamespace, "namespace of Seamark's programs")
	flags.StringVarP(&o.Output, "output", "o", formatText, "output format: "+strings.Join(formats(), ", "))
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 1)
	o.Cluster.CompleteMarkers(command, "marker")
	cluster.CompleteValues(command, "output", formats())
	return command
}

// onePod returns an error unless the only argument is the name of a pod.
func onePod(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return errors.New("the name of a pod is required")
	default:
		return fmt.Errorf("%q is unexpected: must be the name of one pod", args[1])
	}
}

// Complete sets the name of the pod.
func (o *Options) Complete(args []string) {
	o.Pod = strings.TrimPrefix(strings.TrimPrefix(args[0], "pods/"), "pod/")
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	var errs []error
	if o.Pod == "" {
		errs = append(errs, fmt.Errorf("name of the pod: %q is invalid: must not be empty", o.Pod))
	}
	if o.SeamarkNamespace == "" {
		errs = append(errs, fmt.Errorf("--seamark-namespace: %q is invalid: must not be empty", o.SeamarkNamespace))
	}
	switch o.Output {
	case formatText, formatJSON, formatYAML:
	default:
		errs = append(errs, fmt.Errorf("--output: %q is invalid: must be %s", o.Output, strings.Join(formats(), ", ")))
	}
	return errors.Join(errs...)
}

// Run explains the pod. The error of a pod that is not marked does not repeat why.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.connect()
	if err != nil {
		return err
	}
	in, err := o.read(ctx, connection)
	if err != nil {
		return err
	}
	x := explanation.Pod(in)
	if err := o.print(x); err != nil {
		return exit.Failure(err)
	}
	if !x.Marked {
		return exit.Failure(fmt.Errorf("pod %s is not marked as it should be", o.Pod))
	}
	return nil
}
