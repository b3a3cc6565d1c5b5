// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package timeline implements `seamark timeline`, which shows the states of a pod's probes over time.
package timeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/timeline/chart"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// Options are the argument and the flags of `seamark timeline`, which New describes.
type Options struct {
	genericiooptions.IOStreams
	Flags  *cluster.Flags
	Pod    string
	Since  time.Duration
	Output printing.Report
}

const long = `Show the states of a pod's probes over time, as a chart in the terminal or as an SVG.

The timeline is built from what the API server still has: the current states with the time of their
last change, and the events of the pod, which are kept for an hour by default. Equal events are
combined, so that only the first and the last of several changes have a time. What is not known is
shown so, and never guessed.`

const example = `  # The last hour of the pod game-0
  seamark timeline game-0

  # The last 10 minutes, as a picture
  seamark timeline game-0 --since 10m -o svg > game-0.svg`

// svgOutput is the format of pictures.
const svgOutput = "svg"

// New returns the command.
func New(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	o := &Options{
		IOStreams: streams, Flags: cluster.NewFlags(streams, version), Since: time.Hour, Output: printing.Text,
	}
	command := &cobra.Command{
		Use:     "timeline POD",
		Short:   "Show the states of a pod's probes over time",
		Long:    long,
		Example: example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments are invalid: must be the name of one pod", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pods, err := o.Flags.PodNames(args)
			if err = errors.Join(err, o.Validate()); err != nil {
				return err
			}
			o.Pod = pods[0]
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	o.Flags.CompletePods(command, 1)
	command.Flags().DurationVar(&o.Since, "since", o.Since, "length of the timeline")
	o.Output.AddTo(command, svgOutput)
	return command
}

// Validate checks the flags.
func (o *Options) Validate() error {
	errs := []error{o.Output.Validate(svgOutput)}
	if o.Since <= 0 {
		errs = append(errs, fmt.Errorf("--since: %s is invalid: must be more than 0", o.Since))
	}
	return errors.Join(errs...)
}

// Run reads the pod's states and events and prints the timeline.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	query := cluster.Query{Namespace: connection.Namespace, Names: []string{o.Pod}, Whole: true}
	snapshot, events, err := cluster.ReadHistory(ctx, connection.Client, query, o.ErrOut)
	if err != nil {
		return err
	}
	if err := snapshot.AbsentError(ctx, connection.Client, connection.Namespace); err != nil {
		return err
	}
	snapshot.Now = time.Now()
	end := snapshot.Now.UTC().Truncate(time.Second)
	rows := probestatus.List(snapshot.Input).Rows
	if len(rows) == 0 {
		return exit.Failure(fmt.Errorf("pod %s/%s has no probes: no marker selects it", connection.Namespace, o.Pod))
	}
	start := history.Start(snapshot.Pods[0], events, o.Since, end)
	timeline := chart.Timeline{Namespace: connection.Namespace, Pod: o.Pod, Start: start, End: end}
	for i := range rows {
		timeline.Lines = append(timeline.Lines, history.NewLine(&rows[i], events, timeline.Start, end))
	}
	return exit.Failure(o.print(timeline))
}

// defaultWidth is the width of the output if it is not a terminal.
const defaultWidth = 100

func (o *Options) print(timeline chart.Timeline) error {
	return o.Output.Print(o.Out, timeline, func(out io.Writer) error {
		if o.Output == svgOutput {
			return timeline.SVG(printing.Raw(out)) //nolint:wrapcheck // it says what failed
		}
		return timeline.Text(printing.Raw(out), o.style()) //nolint:wrapcheck // it says what failed
	})
}

// style returns how text is printed: with blocks and colors on a terminal only.
func (o *Options) style() chart.Style {
	return chart.Style{
		Width: cmp.Or(printing.Width(o.Out), defaultWidth), Blocks: printing.HasScreen(o.Out), Colors: printing.HasColors(o.Out, os.Getenv),
	}
}
