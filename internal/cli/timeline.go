// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/web/chart"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// TimelineOptions are the options of `seamark timeline`.
type TimelineOptions struct {
	genericiooptions.IOStreams
	// Flags select the cluster, the user and the namespace.
	Flags *cluster.Flags
	// Pod is the name of the pod.
	Pod string
	// Since is the length of the timeline, more than zero.
	Since time.Duration
	// Output is text, svg, json or yaml.
	Output string
	// Now is the clock.
	Now func() time.Time
}

const timelineLong = `Show the states of a pod's probes over time, as a chart in the terminal or as an SVG.

The timeline is built from what the API server still has: the current states with the time of their
last change, and the events of the pod, which are kept for an hour by default. Equal events are
combined, so that only the first and the last of several changes have a time. What is not known is
shown so, and never guessed.`

const timelineExample = `  # The last hour of the pod game-0
  seamark timeline game-0

  # The last 10 minutes, as a picture
  seamark timeline game-0 --since 10m -o svg > game-0.svg`

// svgOutput is the format of pictures.
const svgOutput = "svg"

func timelineOutputs() []string { return append(reportOutputs(), svgOutput) }

func newTimelineCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &TimelineOptions{
		IOStreams: streams, Flags: cluster.NewFlags(streams, version), Now: time.Now, Since: time.Hour, Output: textOutput,
	}
	command := &cobra.Command{
		Use:     "timeline POD",
		Short:   "Show the states of a pod's probes over time",
		Long:    timelineLong,
		Example: timelineExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments are invalid: must be the name of one pod", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Pod = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	o.Flags.CompletePods(command, 1)
	flags := command.Flags()
	flags.DurationVar(&o.Since, "since", o.Since, "length of the timeline")
	flags.StringVarP(&o.Output, "output", "o", o.Output, "output format: text, svg, json or yaml")
	cluster.CompleteValues(command, "output", timelineOutputs())
	return command
}

// Validate checks the flags.
func (o *TimelineOptions) Validate() error {
	var errs []error
	if !slices.Contains(timelineOutputs(), o.Output) {
		errs = append(errs, fmt.Errorf("--output: %q is invalid: must be text, svg, json or yaml", o.Output))
	}
	if o.Since <= 0 {
		errs = append(errs, fmt.Errorf("--since: %s is invalid: must be more than 0", o.Since))
	}
	return errors.Join(errs...)
}

// Run reads the pod's states and events and prints the timeline.
func (o *TimelineOptions) Run(ctx context.Context) error {
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	query := cluster.Query{Namespace: connection.Namespace, Names: []string{o.Pod}, Whole: true}
	snapshot, events, err := readHistory(ctx, connection.Client, query, o.ErrOut)
	if err != nil {
		return err
	}
	if err := snapshot.AbsentError(ctx, connection.Client, connection.Namespace); err != nil {
		return err
	}
	snapshot.Now = o.Now()
	end := snapshot.Now.UTC().Truncate(time.Second)
	timeline := chart.Timeline{Namespace: connection.Namespace, Pod: o.Pod, Start: o.start(snapshot.Pods, events, end), End: end}
	rows := probestate.Of(snapshot.Input).Rows
	if len(rows) == 0 {
		return exit.Failure(fmt.Errorf("pod %s/%s has no probes: no marker selects it", connection.Namespace, o.Pod))
	}
	for i := range rows {
		timeline.Lines = append(timeline.Lines, history.NewLine(&rows[i], events, timeline.Start, end))
	}
	return exit.Failure(o.print(timeline))
}

// start returns when the timeline starts. The events may be those of other pods too.
func (o *TimelineOptions) start(pods []*corev1.Pod, events []history.Event, end time.Time) time.Time {
	start := end
	for _, pod := range pods {
		own := slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return e.Probe.UID != pod.UID })
		if found := history.Start(pod.CreationTimestamp.UTC(), own, o.Since, end); found.Before(start) {
			start = found
		}
	}
	return start
}

// defaultWidth is the width of the output if it is not a terminal.
const defaultWidth = 100

func (o *TimelineOptions) print(timeline chart.Timeline) error {
	switch o.Output {
	case svgOutput:
		return timeline.SVG(printing.Raw(o.Out)) //nolint:wrapcheck // it says what failed
	case textOutput:
		return timeline.Text(printing.Raw(o.Out), o.style()) //nolint:wrapcheck // it says what failed
	default:
		return printStructured(o.Out, o.Output, timeline)
	}
}

// style returns how text is printed: with blocks and colors on a terminal only.
func (o *TimelineOptions) style() chart.Style {
	style := chart.Style{Width: defaultWidth}
	out, isFile := printing.Raw(o.Out).(*os.File)
	if !isFile || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return style
	}
	style.Blocks, style.Colors = true, os.Getenv("NO_COLOR") == ""
	if width, _, err := term.GetSize(int(out.Fd())); err == nil {
		style.Width = width
	}
	return style
}
