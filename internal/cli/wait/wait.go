// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wait implements `seamark wait`, which waits until pods of a cluster meet the expressions
// with which `seamark local --until` waits for local pods, or until objects of apps.kruise.io have a status.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/cli/until"
)

const long = `Wait until pods meet conditions, labels, annotations, events or restarts, or until sets and jobs
meet conditions or have values.

Each --for is a requirement for the selected pods, or an expression with the name of a pod,
as in 'seamark local --until':

  condition=TYPE[:STATUS]      a condition, by default with the status True
  label=KEY[=VALUE]            a label; !KEY means that the label is absent
  annotation=KEY[=VALUE]       an annotation; !KEY means that the annotation is absent
  event=REASON[:TEXT]          an event that the API server still has, or a new one
  restarts=N                   at least N restarts of the containers in total
  pod/NAME REQUIREMENT         the same for these pods: NAME may contain *, ? and [a-z]
  jsonpath={PATH}[=VALUE], create, delete
                               passed to 'kubectl wait': must be the only --for

Pods are named, or selected by -l LABELS or --all, with or without the word pod before. All
expressions must be met at the same time, each by at least one pod, and by all pods that it
selects. With --any, one of these pods is enough for each expression. Pods that are created later
count, too, so the wait for a pod that does not exist does not end before --timeout.

For objects of apps.kruise.io, named as KIND/NAME or KIND NAME, selected by KIND -l LABELS or
KIND --all, or those of the files in -f, each --for is one of the following. KIND can be several
kinds, separated by commas. As 'kubectl wait', the command reads folders with their subfolders, and
has no --kustomize, and no --field-manager, because it writes nothing.

  condition=TYPE[=STATUS]      a condition, by default with the status True
  jsonpath={PATH}[=VALUE]      a field, with any value or this one
  create, delete               the object exists, or does not exist

Conditions and fields count once status.observedGeneration has reached metadata.generation: those
of an earlier specification do not. The wait for condition=Ready ends at once with the exit code 1
if the object is Stalled: progressDeadlineSeconds have passed. Unlike a pod, an object that does not
exist ends the wait at once, unless create or delete is among the expressions. Of a kind, those
count that exist when the wait begins: if none matches, the exit code is 1, as in kubectl. Other
objects, such as deployment/web, are passed to 'kubectl wait', with one --for.

Exit codes are those of 'kubectl wait': 0 if all expressions are met, and otherwise 1.`

// The placeholders are the name of the program.
const example = `  # Wait until one pod of the database is the primary
  %[1]s wait -l app=db --for label=role=primary --any

  # Wait until all game servers are idle
  %[1]s wait -l app=game --for condition=game.io/idle --timeout 5m

  # Check once whether a pod is marked
  %[1]s wait game-0 --for label=gameserver-idle --timeout 0

  # Wait until a set runs the last change in all pods
  %[1]s wait cloneset/arena --for condition=Ready --timeout 5m

  # Wait until all CloneSets with a label run the last change
  %[1]s wait cloneset -l app=game --for condition=Ready --timeout 5m

  # Wait until a job has an end
  %[1]s wait broadcastjob/setup --for 'jsonpath={.status.phase}=completed'`

// defaultTimeout is that of `kubectl wait`.
const defaultTimeout = 30 * time.Second

// options are the arguments and the flags of `seamark wait`, which New describes, and what Complete makes
// of them.
type options struct {
	*target.Flags
	Pods, For []string
	Any       bool

	selector    labels.Selector
	expressions []until.Expression
	// requirements are the expressions for objects that are not pods.
	requirements []*until.ObjectExpression
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	return newCommand(target.NewFlags(streams, version, "wait"), program)
}

func newCommand(targets *target.Flags, program string) *cobra.Command {
	o := &options{Flags: targets}
	o.Timeout = defaultTimeout
	command := &cobra.Command{
		Use:     "wait (POD... | KIND/NAME... | [KIND] (-l LABELS | --all) | -f FILE) --for EXPRESSION",
		Short:   "Wait until pods have marks, or sets and jobs have a status",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.selects() && len(args) == 1 && slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(args[0])) {
				args = nil
			}
			switch {
			case o.isOfObjects(args):
				return o.runObjects(cmd, args)
			case slices.ContainsFunc(o.For, func(text string) bool { return isOfKubectl(text) }):
				return o.passPods(cmd, args)
			}
			if err := o.Complete(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.For, "for", nil, "requirement or expression to wait for; can be repeated")
	o.Selector.AddTo(command)
	o.Files.Recursive = true
	o.AddFilesTo(command)
	flags.BoolVar(&o.All, "all", false, "all pods, or all objects of the kind, in the namespace")
	flags.BoolVar(&o.Any, "any", false, "one of the selected pods is enough for each expression")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "maximum time to wait; 0 checks once")
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	o.Cluster.CompleteObjects(command, true, 0)
	exit.AsKubectl(command)
	return command
}

// Complete parses the arguments and the flags. The error names each invalid one.
func (o *options) Complete(args []string) error {
	pods, wrongPods := o.Cluster.PodNames(args)
	selector, wrongSelector := o.Selector.Parse()
	o.Pods, o.selector = pods, selector
	errs := []error{wrongPods, wrongSelector}
	selected := len(o.Pods) > 0 || o.selects()
	for _, text := range o.For {
		parse := until.ParseRequirement
		if isOfPod(text) {
			parse = until.Parse
		} else if !selected {
			errs = append(errs, errors.New("select pods: by their names, by --selector or --all, or by pod/NAME in each --for"))
			selected = true
		}
		expression, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--for: %w", err))
		}
		o.expressions = append(o.expressions, expression)
	}
	return errors.Join(append(errs, o.validate())...)
}

// selects reports whether objects are selected by their labels, or all.
func (o *options) selects() bool { return o.All || o.Selector.Text != "" }

// isOfPod reports whether an expression names its pods.
func isOfPod(expression string) bool { return strings.HasPrefix(strings.TrimSpace(expression), "pod/") }

// isOfKubectl reports whether an expression is one for pods that only kubectl knows, or has one of the other forms.
func isOfKubectl(expression string, others ...string) bool {
	form, _, _ := strings.Cut(strings.TrimSpace(expression), "=")
	return slices.Contains(append(others, "create", "delete", "jsonpath"), strings.ToLower(form))
}

// passPods passes the wait for pods to kubectl.
func (o *options) passPods(cmd *cobra.Command, args []string) error {
	errs := []error{o.validate()}
	pods, err := o.Cluster.PodNames(args)
	if len(o.For) > 1 || o.Any {
		errs = append(errs, errors.New("--for: create, delete and jsonpath must be the only expression for pods, without --any"))
	}
	if len(pods) == 0 && !o.selects() {
		errs = append(errs, errors.New("select pods: by their names, or by --selector or --all"))
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	for i := range pods {
		pods[i] = "pod/" + pods[i]
	}
	if len(pods) == 0 {
		pods = []string{"pods"}
	}
	return o.PassOn(cmd, pods)
}

// validate checks the flags of waits for pods and for other objects.
func (o *options) validate() error {
	var errs []error
	if len(o.For) == 0 {
		errs = append(errs, errors.New("--for: required: a requirement such as label=role=primary"))
	}
	if o.All && o.Selector.Text != "" {
		errs = append(errs, errors.New("--all: must not be used with --selector"))
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("--timeout: %s is invalid: must be 0 or more", o.Timeout))
	}
	return errors.Join(errs...)
}

// Run waits until all expressions are met, and prints them.
func (o *options) Run(ctx context.Context) error {
	connection, err := o.Connect()
	if err != nil {
		return err
	}
	w := o.newWatched()
	return o.wait(ctx, connection, w.Signal, o.resources(w, connection.Namespace), func() ([]until.Result, error) { return o.results(w), nil })
}

func met(results []until.Result) bool {
	return !slices.ContainsFunc(results, func(r until.Result) bool { return !r.Met })
}

// maxLast is the maximum length of the description of what pods have instead, in bytes.
const maxLast = 300
