// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wait implements `seamark wait`, which waits until pods of a cluster meet the expressions
// with which `seamark local --until` waits for local pods.
package wait

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/until"
)

const long = `Wait until pods meet conditions, labels, annotations, events or restarts.

Each --for is a requirement for the selected pods, or an expression with the name of a pod,
as in 'seamark local --until':

  condition=TYPE[:STATUS]      a condition, by default with the status True
  label=KEY[=VALUE]            a label; !KEY means that the label is absent
  annotation=KEY[=VALUE]       an annotation; !KEY means that the annotation is absent
  event=REASON[:TEXT]          an event that the API server still has, or a new one
  restarts=N                   at least N restarts of the containers in total
  pod/NAME REQUIREMENT         the same for these pods: NAME may contain *, ? and [a-z]

All expressions must be met at the same time, each by at least one pod, and by all pods that it
selects. With --any, one of these pods is enough for each expression. Pods that are created later
count, too.

Exit codes: 0 if all expressions are met; 1 after --timeout; 2 for bad input; 3 if the cluster
cannot be reached, or pods or events cannot be read.`

// The placeholders are the name of the program.
const example = `  # Wait until one pod of the database is the primary
  %[1]s wait -l app=db --for label=role=primary --any

  # Wait until all game servers are idle
  %[1]s wait -l app=game --for condition=game.io/idle --timeout 5m

  # Check once whether a pod is marked
  %[1]s wait game-0 --for label=gameserver-idle --timeout 0`

// defaultTimeout is that of `kubectl wait`.
const defaultTimeout = 30 * time.Second

// options are the arguments and the flags of `seamark wait`, which New describes, and what Complete makes
// of them.
type options struct {
	genericiooptions.IOStreams
	Cluster   *cluster.Flags
	Pods, For []string
	Selector  cluster.Selector
	Any       bool
	Timeout   time.Duration

	selector    labels.Selector
	expressions []until.Expression
	connect     func() (cluster.Connection, error)
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&options{IOStreams: streams, Cluster: flags, connect: flags.Connect, Timeout: defaultTimeout}, program)
}

func newCommand(o *options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "wait [POD...] --for EXPRESSION",
		Short:   "Wait until pods have marks",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.For, "for", nil, "requirement or expression to wait for; can be repeated")
	o.Selector.AddTo(command)
	flags.BoolVar(&o.Any, "any", false, "one of the selected pods is enough for each expression")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "maximum time to wait; 0 checks once")
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 0)
	return command
}

// Complete parses the arguments and the flags. The error names each invalid one.
func (o *options) Complete(args []string) error {
	pods, wrongPods := o.Cluster.PodNames(args)
	selector, wrongSelector := o.Selector.Parse()
	o.Pods, o.selector = pods, selector
	errs := []error{wrongPods, wrongSelector}
	selected := len(o.Pods) > 0 || o.Selector.Text != ""
	for _, text := range o.For {
		parse := until.ParseRequirement
		if strings.HasPrefix(strings.TrimSpace(text), "pod/") {
			parse = until.Parse
		} else if !selected {
			errs = append(errs, errors.New("select pods: by their names, by --selector, or by pod/NAME in each --for"))
			selected = true
		}
		expression, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--for: %w", err))
		}
		o.expressions = append(o.expressions, expression)
	}
	if len(o.For) == 0 {
		errs = append(errs, errors.New("--for: required: a requirement such as label=role=primary"))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("--timeout: %s is invalid: must be 0 or more", o.Timeout))
	}
	if len(o.Pods) > 0 && o.Selector.Text != "" {
		errs = append(errs, fmt.Errorf("--selector: %q is invalid: must not be used with the name of a pod", o.Selector.Text))
	}
	return errors.Join(errs...)
}

// Run waits until all expressions are met, and prints them.
func (o *options) Run(ctx context.Context) error {
	connection, err := o.connect()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	w := o.newWatched()
	verdicts, err := o.watch(ctx, connection, w.Signal, o.resources(w, connection.Namespace), func() ([]until.Verdict, error) { return o.verdicts(w), nil })
	if ctx.Err() != nil && err != nil {
		return exit.Failure(errors.New("interrupted"))
	}
	if err != nil {
		return err
	}
	return o.report(verdicts)
}

func met(verdicts []until.Verdict) bool {
	return !slices.ContainsFunc(verdicts, func(v until.Verdict) bool { return !v.Met })
}

// maxLast is the maximum length of the description of what pods have instead, in bytes.
const maxLast = 300
