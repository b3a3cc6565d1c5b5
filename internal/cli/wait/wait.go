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

// Options are the options of `seamark wait`. Complete sets the unexported fields.
type Options struct {
	genericiooptions.IOStreams
	// Cluster selects the cluster, the user and the namespace.
	Cluster *cluster.Flags
	// Pods are the names of the pods. If it is empty, the selector and the expressions select pods.
	Pods []string
	// Selector selects pods by labels, as kubectl does.
	Selector string
	// For are the expressions, at least one.
	For []string
	// Any is whether one of the selected pods is enough for each expression.
	Any bool
	// Timeout is the maximum time to wait. 0 checks once.
	Timeout time.Duration

	selector    labels.Selector
	expressions []until.Expression
	connect     func() (cluster.Connection, error)
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	flags := cluster.NewFlags(streams, version)
	return newCommand(&Options{IOStreams: streams, Cluster: flags, connect: flags.Connect, Timeout: defaultTimeout}, program)
}

func newCommand(o *Options, program string) *cobra.Command {
	command := &cobra.Command{
		Use:     "wait [POD...] --for EXPRESSION",
		Short:   "Wait until pods have marks",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Pods = args
			if err := errors.Join(o.Complete(), o.Validate()); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.For, "for", nil, "requirement or expression to wait for; can be repeated")
	flags.StringVarP(&o.Selector, "selector", "l", "", "wait for the pods with these labels, for example app=db")
	flags.BoolVar(&o.Any, "any", false, "one of the selected pods is enough for each expression")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "maximum time to wait; 0 checks once")
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompletePods(command, 0)
	return command
}

// Complete parses the arguments and the flags.
func (o *Options) Complete() error {
	var errs []error
	for i, name := range o.Pods {
		o.Pods[i] = strings.TrimPrefix(strings.TrimPrefix(name, "pods/"), "pod/")
	}
	if o.Selector != "" {
		var err error
		if o.selector, err = labels.Parse(o.Selector); err != nil {
			errs = append(errs, fmt.Errorf("--selector: %q is invalid: %w", o.Selector, err))
		}
	}
	for _, text := range o.For {
		parse := until.ParseRequirement
		if strings.HasPrefix(strings.TrimSpace(text), "pod/") {
			parse = until.Parse
		}
		expression, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--for: %w", err))
			continue
		}
		o.expressions = append(o.expressions, expression)
	}
	return errors.Join(errs...)
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	named := func(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "pod/") }
	var errs []error
	if len(o.For) == 0 {
		errs = append(errs, errors.New("--for: required: a requirement such as label=role=primary"))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("--timeout: %s is invalid: must be 0 or more", o.Timeout))
	}
	switch {
	case slices.Contains(o.Pods, ""):
		errs = append(errs, fmt.Errorf("name of a pod: %q is invalid: must not be empty", ""))
	case len(o.Pods) > 0 && o.Cluster.AllNamespaces:
		errs = append(errs, fmt.Errorf("--all-namespaces: must not be used with the name of a pod: %q", o.Pods[0]))
	case len(o.Pods) > 0 && o.Selector != "":
		errs = append(errs, fmt.Errorf("--selector: %q is invalid: must not be used with the name of a pod", o.Selector))
	case len(o.Pods) == 0 && o.Selector == "" && slices.ContainsFunc(o.For, func(text string) bool { return !named(text) }):
		errs = append(errs, errors.New("select pods: by their names, by --selector, or by pod/NAME in each --for"))
	}
	return errors.Join(errs...)
}

// Run waits until all expressions are met, and prints them.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.connect()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	verdicts, err := o.watch(ctx, connection)
	if errors.Is(err, context.Canceled) {
		return exit.Failure(errors.New("interrupted"))
	}
	if err != nil {
		return err
	}
	return o.report(verdicts)
}

// met reports whether all expressions are met.
func met(verdicts []until.Verdict) bool {
	return !slices.ContainsFunc(verdicts, func(v until.Verdict) bool { return !v.Met })
}

// maxLast is the maximum length of the description of what pods have instead, in bytes.
const maxLast = 300
