// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout implements `seamark rollout`: the commands of `kubectl rollout` for the sets and jobs of apps.kruise.io, for
// which kubectl has none. Names, the main flags and output are those of kubectl; objects of other groups are passed to it.
package rollout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/group"
)

const long = `Watch, pause, restart and undo rollouts, as kubectl rollout does for the kinds of Kubernetes.

Names of kinds that Seamark serves mean its own: statefulset/db is statefulsets.apps.kruise.io/db.
Other objects, such as deployment/web or statefulsets.apps/db, are passed to kubectl.`

// The placeholder is the name of the program.
const example = `  # Change the image, and wait until all pods run it
  kubectl patch cloneset arena --type=json \
    -p='[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "arena:2"}]'
  %[1]s rollout status cloneset/arena --timeout=5m

  # Show what the revisions have changed, and return to the one before
  %[1]s rollout history cloneset/arena
  %[1]s rollout undo cloneset/arena

  # Replace all pods of a StatefulSet, within its budget
  %[1]s rollout restart statefulset/db`

// options are what the commands have in common.
type options struct {
	genericiooptions.IOStreams
	cluster  *cluster.Flags
	selector cluster.Selector
	files    []string

	// name is the name of the command, args are its arguments without flags.
	name    string
	args    []string
	connect func() (cluster.Connection, error)
	now     func() time.Time
	// kubectl runs `kubectl rollout` with arguments.
	kubectl func(ctx context.Context, args []string) error
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	command := &cobra.Command{
		Use: "rollout SUBCOMMAND", Short: "Watch, pause, restart and undo rollouts", Long: long, Example: fmt.Sprintf(example, program),
		Args: group.RejectUnknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, add := range []func(o *options) *cobra.Command{newStatus, newHistory, newUndo, newPause, newResume, newRestart} {
		flags := cluster.NewFlags(streams, version)
		o := &options{IOStreams: streams, cluster: flags, connect: flags.Connect, now: time.Now}
		o.kubectl = o.runKubectl
		command.AddCommand(add(o))
	}
	return command
}

// command returns a subcommand with the flags that all have. run is called for each object.
func (o *options) command(use, short, help string, run func(ctx context.Context, t *target) error) *cobra.Command {
	o.name, _, _ = strings.Cut(use, " ")
	command := &cobra.Command{
		Use: use + " (KIND/NAME... | KIND NAME... | KIND -l LABELS | -f FILE)", Short: short, Long: short + ".\n\n" + help,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args, run) },
	}
	flags := command.Flags()
	flags.StringVarP(&o.selector.Text, "selector", "l", "", "only the objects of the kind with these labels")
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "files, folders or URLs of the objects")
	o.cluster.AddTo(command)
	return command
}
