// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package target

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
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Flags are the arguments and the flags that name objects: KIND/NAME, KIND,KIND NAME, KIND,KIND -l LABELS, -f FILE or -k FOLDER. Use
// NewFlags to create them.
type Flags struct {
	genericiooptions.IOStreams
	Cluster  *cluster.Flags
	Selector cluster.Selector
	// Files are files, folders and URLs, or the folder of a kustomization.
	Files resource.FilenameOptions
	// All selects all objects of the kind.
	All bool
	// FieldManager is the name of the writer, if the command has the flag.
	FieldManager string
	// Timeout is the maximum time to find the objects; 0 has no limit.
	Timeout time.Duration
	// Command are the words of the command of kubectl to which objects of other groups are passed.
	Command []string

	// Check checks the other flags of a command for objects of Seamark before it connects. It may be nil.
	Check func() error
	// Connect returns the connection, and Kubectl runs kubectl with arguments.
	Connect func() (cluster.Connection, error)
	Kubectl func(ctx context.Context, args []string) error
}

// NewFlags returns the flags of a command that has the same words as one of kubectl.
func NewFlags(streams genericiooptions.IOStreams, version string, command ...string) *Flags {
	flags := cluster.NewFlags(streams, version)
	f := &Flags{IOStreams: streams, Cluster: flags, Command: command, Connect: flags.Connect}
	f.Kubectl = f.runKubectl
	return f
}

// AddTo defines the flags in the command.
func (f *Flags) AddTo(command *cobra.Command) {
	command.Flags().StringVarP(&f.Selector.Text, "selector", "l", "", "only the objects of the kind with these labels")
	flags := f.fileFlags()
	flags.Kustomize = &f.Files.Kustomize
	flags.AddFlags(command.Flags())
	f.Cluster.AddTo(command)
	f.Cluster.CompleteObjects(command, false, 0)
}

// AddFieldManagerTo defines the name of the writer, by default the one that is set.
func (f *Flags) AddFieldManagerTo(command *cobra.Command) {
	command.Flags().StringVar(&f.FieldManager, "field-manager", f.FieldManager, "name of the manager of the fields that the command sets")
}

// Run calls run for each object that the arguments and the flags name. Objects of other groups are passed to kubectl with all
// arguments.
func (f *Flags) Run(cmd *cobra.Command, args, all []string, run func(ctx context.Context, t *Target) error) error {
	targets, err := f.Targets(cmd.Context(), args)
	switch {
	case errors.Is(err, ErrOthers):
		return f.PassOn(cmd, all)
	case errors.Is(err, ErrNone):
		fmt.Fprintln(f.ErrOut, text.Line(err.Error()))
		return nil // As kubectl.
	case err != nil:
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var errs []error
	for _, t := range targets {
		if ctx.Err() != nil {
			break // The error of the object before says that the command was interrupted.
		}
		errs = append(errs, run(ctx, t))
	}
	return errors.Join(errs...)
}

// ErrOthers means that none of the objects is one of Seamark's.
var ErrOthers = errors.New("objects of other groups")

// Targets returns the objects that the arguments and the flags name. The error is ErrOthers if none is one of Seamark's. Bad input
// is found before the connection is needed, except in files.
func (f *Flags) Targets(ctx context.Context, args []string) ([]*Target, error) {
	find, err := f.parse(args)
	if err == nil && f.Check != nil {
		err = f.Check()
	}
	if err != nil {
		return nil, err
	}
	connection, err := f.Connect()
	if err != nil {
		return nil, err
	}
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Timeout)
		defer cancel()
	}
	targets, err := find(ctx, connection)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = f.Unanswered()
	}
	return distinct(targets), err
}

// distinct removes objects that are named twice, such as by two names of their kind.
func distinct(targets []*Target) []*Target {
	seen := map[string]bool{}
	return slices.DeleteFunc(targets, func(t *Target) bool {
		id := t.Kind.Kind + "/" + t.Key().String()
		defer func() { seen[id] = true }()
		return seen[id]
	})
}

// Unanswered returns the error that nothing could be read within the timeout.
func (f *Flags) Unanswered() error {
	return exit.NoAccess(fmt.Errorf("the cluster has not answered within --timeout=%s", f.Timeout))
}

// finder returns objects.
type finder func(ctx context.Context, connection cluster.Connection) ([]*Target, error)

// parse returns what finds the objects.
func (f *Flags) parse(args []string) (finder, error) {
	inFiles := f.Files.RequireFilenameOrKustomize() == nil
	switch {
	case f.Files.Kustomize != "" && (len(f.Files.Filenames) > 0 || f.Files.Recursive):
		return nil, fmt.Errorf("--kustomize: %q is invalid: must not be used with --filename or --recursive", f.Files.Kustomize)
	case inFiles && len(args) > 0:
		return nil, fmt.Errorf("--filename and --kustomize: must not be used with the name of an object: %q", args[0])
	case inFiles && f.Selector.Text != "":
		return nil, fmt.Errorf("--selector: %q is invalid: must not be used with --filename or --kustomize", f.Selector.Text)
	case f.All && (inFiles || f.Selector.Text != ""):
		return nil, errors.New("--all: must not be used with --selector, --filename or --kustomize")
	case inFiles:
		return f.inFiles, nil
	case len(args) == 0:
		return nil, errors.New("an object is required: KIND/NAME, KIND NAME, KIND -l LABELS, -f FILE or -k FOLDER")
	case f.All || f.Selector.Text != "":
		return f.selected(args)
	}
	pairs, err := pairsOf(args)
	if err != nil {
		return nil, err
	}
	return named(pairs)
}

// pairsOf returns the kinds and the names of arguments such as KIND/NAME, or KIND NAME. Several kinds have all of the names, as in
// kubectl.
func pairsOf(args []string) (pairs [][2]string, err error) {
	if strings.Contains(args[0], "/") {
		for _, arg := range args {
			kind, name, found := strings.Cut(arg, "/")
			if !found || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q is invalid: must be KIND/NAME", arg)
			}
			pairs = append(pairs, [2]string{kind, name})
		}
	} else {
		of, err := splitKinds(args[0])
		if err != nil {
			return nil, err
		}
		for _, kind := range of {
			for _, name := range args[1:] {
				if name == "" || strings.Contains(name, "/") {
					return nil, fmt.Errorf("%q is invalid: must be the name of a %s, because the first argument is a kind", name, kind)
				}
				pairs = append(pairs, [2]string{kind, name})
			}
		}
		if len(pairs) == 0 && NamesKind(args[0]) {
			return nil, fmt.Errorf("a name is required: %[1]s NAME, or %[1]s -l LABELS", args[0])
		}
	}
	return pairs, nil
}

// splitKinds returns the names of kinds in an argument.
func splitKinds(arg string) ([]string, error) {
	names := strings.Split(arg, ",")
	for _, name := range names {
		if len(names) > 1 && (name == "" || strings.ContainsFunc(name, unicode.IsSpace)) {
			return nil, fmt.Errorf("%q is invalid: must be kinds, separated by commas without spaces", arg)
		}
	}
	return names, nil
}

// named finds the objects with the kinds and the names.
func named(pairs [][2]string) (finder, error) {
	var targets []*Target
	var others []string
	for _, pair := range pairs {
		kind, err := kindOf(pair[0])
		switch {
		case err != nil:
			return nil, err
		case kind == nil:
			others = append(others, strings.Join(pair[:], "/"))
		default:
			targets = append(targets, New(cluster.Connection{}, kind, "", pair[1]))
		}
	}
	return func(_ context.Context, connection cluster.Connection) ([]*Target, error) {
		for i, t := range targets {
			targets[i] = New(connection, t.Kind, connection.Namespace, t.Name)
		}
		return targets, nil
	}, mixed(targets, others)
}

// NamesKind reports whether an argument is the name of a kind of apps.kruise.io, or of several kinds.
func NamesKind(arg string) bool { return strings.Contains(arg, ",") || kinds.ByName(arg) != nil }

// kindOf returns the kind with the name, nil if it is one of another group. The error is about a kind that the group does not have,
// or that is a misspelled one of it.
func kindOf(name string) (*kinds.Kind, error) {
	kind := kinds.ByName(name)
	switch similar := Misspelled(name); {
	case kind != nil:
		return kind, nil
	case strings.HasSuffix(strings.ToLower(name), "."+v1alpha1.GroupName):
		return nil, fmt.Errorf("kind: %q is invalid: must be one of %s", name, strings.Join(names(), ", "))
	case similar != "":
		return nil, fmt.Errorf("kind: %q is invalid%s", name, text.Suggestion(similar))
	}
	return nil, nil //nolint:nilnil // kubectl knows it
}

// Misspelled returns the name of the kind of apps.kruise.io of which a name without a group is a misspelling, empty if there is none.
func Misspelled(name string) string {
	name = strings.ToLower(name)
	var known []string
	for _, kind := range kinds.Table() {
		known = append(known, strings.ToLower(kind.Kind), kind.Resource)
	}
	if kinds.ByName(name) != nil {
		return ""
	}
	return text.Typo(name, known)
}

// names returns the kinds.
func names() (names []string) {
	for _, kind := range kinds.Table() {
		names = append(names, kind.Kind)
	}
	return names
}

// mixed returns ErrOthers if there are only objects of other groups, and an error if there are some.
func mixed(targets []*Target, others []string) error {
	switch {
	case len(targets) == 0:
		return ErrOthers
	case len(others) > 0:
		return fmt.Errorf("%q is invalid: must be of apps.kruise.io, as %s is: run the command for it alone", others[0],
			strings.TrimSuffix(targets[0].String(), "/")) // Objects that are selected have no name yet.
	}
	return nil
}

// selected finds the objects of the kinds with the labels, or all.
func (f *Flags) selected(args []string) (finder, error) {
	selector, err := f.Selector.Parse()
	if err != nil {
		return nil, err
	}
	if len(args) > 1 || strings.Contains(args[0], "/") {
		if f.All {
			return nil, fmt.Errorf("--all: must not be used with the name of an object: %q", args[len(args)-1])
		}
		return nil, fmt.Errorf("--selector: %q is invalid: must not be used with the name of an object", f.Selector.Text)
	}
	names, err := splitKinds(args[0])
	if err != nil {
		return nil, err
	}
	var unnamed []*Target
	var others []string
	for _, name := range names {
		kind, err := kindOf(name)
		switch {
		case err != nil:
			return nil, err
		case kind == nil:
			others = append(others, name)
		default:
			unnamed = append(unnamed, New(cluster.Connection{}, kind, "", ""))
		}
	}
	unnamed = distinct(unnamed)
	return func(ctx context.Context, connection cluster.Connection) (targets []*Target, err error) {
		var resources []string
		for _, each := range unnamed {
			of, err := f.list(ctx, connection, each.Kind, selector)
			if err != nil {
				return nil, err
			}
			targets, resources = append(targets, of...), append(resources, each.Kind.Resource)
		}
		if len(targets) == 0 {
			which := ""
			if selector != nil {
				which = " with the labels " + f.Selector.Text
			}
			return nil, exit.Failure(fmt.Errorf("%w: no %s%s%s", ErrNone, strings.Join(resources, ", "), which, cluster.Where(connection.Namespace)))
		}
		return targets, nil
	}, mixed(unnamed, others)
}

// ErrNone means that no object has the labels, or that there is none. The text is that of kubectl wait.
var ErrNone = errors.New("no matching resources found")

// list returns the objects of the kind with the labels, or all without a selector.
func (f *Flags) list(ctx context.Context, connection cluster.Connection, kind *kinds.Kind, selector labels.Selector) ([]*Target, error) {
	probe := New(connection, kind, connection.Namespace, "")
	options := []client.ListOption{client.InNamespace(probe.Namespace)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	listed := NewList(kind)
	var targets []*Target
	err := cluster.Pages(ctx, connection.Client, NewList(kind), func(page client.ObjectList) {
		listed.SetResourceVersion(page.GetResourceVersion())
		_ = meta.EachListItem(page, func(item runtime.Object) error { // It returns the errors of the function only.
			object, _ := item.(*unstructured.Unstructured)
			listed.Items = append(listed.Items, *object)
			target := New(connection, kind, object.GetNamespace(), object.GetName())
			target.Listed = listed
			targets = append(targets, target)
			return nil
		})
	}, options...)
	if err != nil {
		return nil, probe.FailedTo("list", permission.Resource(kind.Definition()), err)
	}
	return targets, nil
}
