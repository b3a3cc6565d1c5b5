// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package test implements `seamark test`, which runs the probes of a marker, once or at their periods,
// and shows what the marker would do. It changes nothing in the cluster.
package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

const long = `Run the probes of a PodProbeMarker once, immediately, through the API server, and show what
the marker would do. The marker is in a file, or it exists in the cluster. Nothing in the
cluster changes.

An argument is a file if it ends in .yaml, .yml or .json or contains a slash, or is -. -f FILE is the
same as FILE. All others are pods; pod/NAME always is one.

The marker selects the pods. If pods are named, only these are used, and a pod that the marker
does not select is reported with the reason. Commands run as with "kubectl exec", and network
probes as with "kubectl port-forward"; the code of the agent evaluates them. RESULT is Succeeded
or Failed, Error if the result is not known, or NotRun. CHANGES are the differences between the
marks that the pod has and those that it would have in this state: +name=value, -name=value or
name=value->value. A state takes effect after as many equal results in a row as the probe's
threshold; -o wide shows it.

With --for, each probe runs at its period, and the thresholds apply as in the agent. A line shows
each run when it ends: STREAK is the number of equal results in a row and the threshold, and STATE
is the state after the run. At the end, a table shows the state of each probe, or Undecided if no
result reached its threshold. Ctrl-C ends the runs early and prints the table.

The markers in files are checked first, as by "seamark lint". The command needs the permissions
to get and list pods, and to create pods/exec or pods/portforward. With the permission to list
podprobemarkers, it takes other markers into account.

Exit codes: 0 if all probes succeeded, or have the state --expect; 1 if one has not or could not
run, or after Ctrl-C; 2 for bad input; 3 if the cluster cannot be reached or a permission is
missing without which no probe can run.`

// The placeholders are the name of the program.
const example = `  # Run the probes of a file in the pods that its selector matches
  %[1]s test marker.yaml

  # Run them in one pod
  %[1]s test marker.yaml worker-0

  # Run one probe of a marker in the cluster in up to 50 pods, and show the marks and notes
  %[1]s test -m worker#busy --limit 50 -o wide

  # Run them at their periods for 30 seconds, and apply the thresholds
  %[1]s test marker.yaml --for 30s

  # Check in CI that a probe fails while the pod is busy
  %[1]s test marker.yaml worker-0 --expect Failed

  # Print what failed
  %[1]s test marker.yaml -o json | jq '.items[] | select(.result != "Succeeded")'`

const (
	defaultLimit, maxLimit       = 10, 1000
	defaultParallel, maxParallel = 4, 32
	maxFor                       = time.Hour
)

// Options are the options of `seamark test`.
type Options struct {
	genericiooptions.IOStreams
	// Cluster and Output are flags that several commands have.
	Cluster *cluster.Flags
	Output  printing.Flags

	// Filenames are files and folders with markers, or "-" for the standard input.
	Filenames []string
	// Marker is the name of a marker, or MARKER#PROBE. It is one of the files if there are any.
	Marker string
	// Pods are the names of the pods. If it is empty, the marker selects them.
	Pods []string
	// Limit is the maximum number of pods of a marker.
	Limit int
	// Parallel is the maximum number of probes at the same time.
	Parallel int
	// For is how long the probes run at their periods. It counts if repeat is set; otherwise, they run
	// once.
	For    time.Duration
	repeat bool
	// Expect is the state that all probes must have for success: Succeeded or Failed, in any case.
	Expect string

	selected identity.ID
	connect  func() (cluster.Connection, error)
	// open returns the probers of the containers.
	open func(*rest.Config) (transport, error)
	now  func() time.Time
}

// transport reaches containers. See package remote.
type transport interface {
	// Prober returns the prober for the container.
	Prober(container remote.Container) probing.Prober
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	open := func(config *rest.Config) (transport, error) { return remote.NewClient(config, version) }
	return newCommand(&Options{IOStreams: streams, Cluster: flags, connect: flags.Connect, open: open, now: time.Now}, program)
}

func newCommand(o *Options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "test (FILE... | -m MARKER) [POD...]",
		Short:   "Run the probes of a marker and show what it would do",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.repeat = cmd.Flags().Changed("for")
			if err := errors.Join(o.Complete(args), o.Validate()); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.Run(ctx)
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.Filenames, "filename", "f", nil, "file or folder with markers, or - for the standard input (repeatable; also as arguments)")
	flags.StringVarP(
		&o.Marker, "marker", "m", "", "run only the probes of this marker, or one probe of it as MARKER#PROBE; without -f, the marker in the cluster",
	)
	flags.IntVar(&o.Limit, "limit", defaultLimit, fmt.Sprintf("maximum number of pods of a marker, at most %d", maxLimit))
	flags.IntVar(&o.Parallel, "parallel", defaultParallel, fmt.Sprintf("maximum number of probes at the same time, at most %d", maxParallel))
	flags.DurationVar(
		&o.For, "for", 0, fmt.Sprintf("run the probes at their periods for this time, at most %.0fh, and apply the thresholds (default once)", maxFor.Hours()),
	)
	flags.StringVar(&o.Expect, "expect", succeeded, "succeed if all probes have this state: "+strings.Join(expectable(), " or "))
	o.Output.AddTo(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 0)
	o.Cluster.CompleteNames(command, "marker", permission.Markers)
	cluster.CompleteValues(command, "expect", expectable())
	// It fails only if the flag does not exist or has a completion already.
	_ = command.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"30s", "1m", "5m", "1h"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// expectable returns the states that --expect allows.
func expectable() []string { return []string{succeeded, failed} }

// Complete parses the arguments and the marker.
func (o *Options) Complete(args []string) error {
	names, pods := files.Split(args)
	var err error
	if o.Filenames, err = files.Join(o.Filenames, names); err != nil {
		return err //nolint:wrapcheck // it names the value
	}
	if o.Pods, err = o.Cluster.PodNames(pods); err != nil {
		return err
	}
	if o.selected, err = identity.ParseSelection(o.Marker); err != nil {
		return fmt.Errorf("--marker: %w", err)
	}
	return nil
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	var errs []error
	if len(o.Filenames) == 0 && o.Marker == "" {
		errs = append(
			errs, errors.New(
				"FILE or --marker is required: a file or folder with a marker, or the name of a marker in the cluster; write ./FOLDER for a folder",
			),
		)
	}
	for _, flag := range []struct {
		name       string
		value, max int
	}{{"limit", o.Limit, maxLimit}, {"parallel", o.Parallel, maxParallel}} {
		if flag.value < 1 || flag.value > flag.max {
			errs = append(errs, fmt.Errorf("--%s: %d is invalid: must be between 1 and %d", flag.name, flag.value, flag.max))
		}
	}
	if known := slices.IndexFunc(expectable(), func(state string) bool { return strings.EqualFold(state, o.Expect) }); known < 0 {
		errs = append(errs, fmt.Errorf("--expect: %q is invalid: must be %s", o.Expect, strings.Join(expectable(), " or ")))
	}
	if o.repeat && (o.For <= 0 || o.For > maxFor) {
		errs = append(errs, fmt.Errorf("--for: %s is invalid: must be positive and at most %.0fh", o.For, maxFor.Hours()))
	}
	if len(o.Pods) > o.Limit {
		errs = append(errs, fmt.Errorf("--limit: %d is invalid: must be at least the number of named pods, %d", o.Limit, len(o.Pods)))
	}
	return errors.Join(append(errs, o.Output.Validate())...)
}

// Run runs the probes and prints the results.
func (o *Options) Run(ctx context.Context) error {
	markers, err := o.readFiles(ctx)
	if err != nil {
		return err
	}
	connection, err := o.connect()
	if err != nil {
		return err
	}
	transport, err := o.open(connection.Config)
	if err != nil {
		return exit.NoAccess(err)
	}
	trials, err := o.selectTrials(ctx, connection, markers)
	if err != nil {
		return err
	}
	runner := runner{transport: transport, now: o.now, parallel: o.Parallel}
	if o.repeat {
		return o.runFor(ctx, &runner, trials)
	}
	runner.run(ctx, trials)
	if ctx.Err() != nil {
		return exit.Failure(errors.New("interrupted: the probes have not ended"))
	}
	return o.conclude(trials, result)
}
