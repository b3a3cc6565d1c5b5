// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// target is an object that a command is about.
type target struct {
	cluster.Connection
	kind      *kinds.Kind
	namespace string
	name      string
	// object is the object as it was read last.
	object kinds.Object
	// pinned is the name of the only revision that is waited for, empty for any.
	pinned string
}

// String returns the object as kubectl names it in its output.
func (t *target) String() string {
	return strings.ToLower(t.kind.Kind) + "." + t.kind.Group + "/" + t.name
}

// short returns the kind and the name in quotation marks, as kubectl writes them in messages of rollouts.
func (t *target) short() string { return fmt.Sprintf("%s %q", strings.ToLower(t.kind.Kind), t.name) }

// set returns the object as a set. The error says that the command does not support its kind.
func (t *target) set(command string) (setview.View, error) {
	view, ok := setview.Of(t.object)
	if !ok {
		return view, exit.Failure(fmt.Errorf("%s: rollout %s supports only %s", t, command, strings.Join(setNames(), ", ")))
	}
	return view, nil
}

// setNames returns the kinds whose objects have rollouts.
func setNames() (names []string) {
	for _, kind := range kinds.Table() {
		if _, ok := setview.Of(kind.New()); ok {
			names = append(names, kind.Kind)
		}
	}
	return names
}

// read reads the object.
func (t *target) read(ctx context.Context) error {
	object := t.kind.New()
	if err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: t.name}, object); err != nil {
		return t.failed(err, "get")
	}
	t.object = object
	return nil
}

// command returns the command of rollouts about the object.
func (t *target) command(name string) string {
	command := "seamark rollout " + name + " " + strings.ToLower(t.kind.Kind) + "/" + t.name
	if t.namespace != "" {
		command += " -n " + t.namespace
	}
	return command
}

// failed returns the error of a request about the object with its exit code.
func (t *target) failed(err error, verb string) error {
	if apierrors.IsNotFound(err) && !cluster.IsNotInstalled(err) {
		where := ""
		if t.namespace != "" {
			where = cluster.Where(t.namespace)
		}
		hint := ""
		if t.Client.Scheme().Recognizes(appsv1.SchemeGroupVersion.WithKind(t.kind.Kind)) {
			hint = fmt.Sprintf("; the one of Kubernetes is %s.apps/%s", t.kind.Resource, t.name)
		}
		return exit.Failure(fmt.Errorf("%s not found%s%s", t, where, hint))
	}
	return t.failedTo(verb, permission.Resource(t.kind.Definition()), err)
}

// failedTo returns the error of a request about a resource in the namespace of the object with its exit code.
func (t *target) failedTo(verb string, resource permission.Resource, err error) error {
	missing, failure := cluster.MissingOf(err, verb, resource, t.namespace)
	if missing != nil {
		return exit.NoAccess(fmt.Errorf("%s; %s", missing, missing.Fix()))
	}
	return failure
}

// run runs the command for each object that the arguments name.
func (o *options) run(cmd *cobra.Command, args []string, run func(ctx context.Context, t *target) error) error {
	o.args = args
	connection, err := o.connect()
	if err != nil {
		return err
	}
	targets, err := o.targets(cmd.Context(), connection)
	switch {
	case errors.Is(err, errOthers):
		return o.kubectl(cmd.Context(), o.kubectlArgs(cmd))
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
	return joined(errs)
}

// joined joins errors, with the highest of their exit codes.
func joined(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	err := errors.Join(errs...)
	switch {
	case slices.ContainsFunc(errs, func(err error) bool { return exit.Code(err) == exit.Access }):
		return exit.NoAccess(err)
	case slices.ContainsFunc(errs, func(err error) bool { return exit.Code(err) == exit.Failed }):
		return exit.Failure(err)
	}
	return err
}

// errOthers means that none of the objects is one of Seamark's.
var errOthers = errors.New("objects of other groups")

// targets returns the objects that the arguments and the flags name.
func (o *options) targets(ctx context.Context, connection cluster.Connection) ([]*target, error) {
	switch {
	case len(o.files) > 0 && len(o.args) > 0:
		return nil, fmt.Errorf("--filename: must not be used with the name of an object: %q", o.args[0])
	case len(o.files) > 0 && o.selector.Text != "":
		return nil, fmt.Errorf("--selector: %q is invalid: must not be used with --filename", o.selector.Text)
	case len(o.files) > 0:
		return o.inFiles(connection)
	case len(o.args) > 0 && strings.Contains(o.args[0], ","):
		return nil, fmt.Errorf("%q is invalid: must be one kind: run the command for each", o.args[0])
	case len(o.args) == 0:
		return nil, errors.New("an object is required: KIND/NAME, KIND NAME, KIND -l LABELS, or -f FILE")
	case o.selector.Text != "":
		return o.selected(ctx, connection)
	}
	return named(o.args, connection)
}

// named returns the objects that are named as KIND/NAME, or as KIND NAME.
func named(args []string, connection cluster.Connection) ([]*target, error) {
	pairs := [][2]string{}
	if strings.Contains(args[0], "/") {
		for _, arg := range args {
			kind, name, found := strings.Cut(arg, "/")
			if !found || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q is invalid: must be KIND/NAME", arg)
			}
			pairs = append(pairs, [2]string{kind, name})
		}
	} else {
		for _, name := range args[1:] {
			if name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q is invalid: must be the name of a %s, because the first argument is a kind", name, args[0])
			}
			pairs = append(pairs, [2]string{args[0], name})
		}
		if len(pairs) == 0 && kinds.ByName(args[0]) != nil {
			return nil, fmt.Errorf("a name is required: %[1]s/NAME, or %[1]s -l LABELS", args[0])
		}
	}
	var targets []*target
	var others []string
	for _, pair := range pairs {
		kind := kinds.ByName(pair[0])
		if kind == nil && strings.HasSuffix(strings.ToLower(pair[0]), "."+v1alpha1.GroupName) {
			return nil, fmt.Errorf("kind: %q is invalid: must be one of %s", pair[0], strings.Join(setNames(), ", "))
		}
		if kind == nil {
			others = append(others, strings.Join(pair[:], "/"))
			continue
		}
		targets = append(targets, newTarget(connection, kind, connection.Namespace, pair[1]))
	}
	return targets, mixed(targets, others)
}

// mixed returns errOthers if there are only objects of other groups, and an error if there are some.
func mixed(targets []*target, others []string) error {
	switch {
	case len(targets) == 0:
		return errOthers
	case len(others) > 0:
		return fmt.Errorf("%q is invalid: must be of apps.kruise.io, as %s is: run the command for it alone", others[0], targets[0])
	}
	return nil
}

func newTarget(connection cluster.Connection, kind *kinds.Kind, namespace, name string) *target {
	if kind.ClusterScoped {
		namespace = ""
	}
	return &target{Connection: connection, kind: kind, namespace: namespace, name: name}
}

// selected returns the objects of a kind with the labels.
func (o *options) selected(ctx context.Context, connection cluster.Connection) ([]*target, error) {
	selector, err := o.selector.Parse()
	if err != nil {
		return nil, err
	}
	if len(o.args) > 1 || strings.Contains(o.args[0], "/") {
		return nil, fmt.Errorf("--selector: %q is invalid: must not be used with the name of an object", o.selector.Text)
	}
	kind := kinds.ByName(o.args[0])
	if kind == nil {
		return nil, errOthers
	}
	probe := newTarget(connection, kind, connection.Namespace, "")
	var targets []*target
	err = cluster.Each(ctx, connection.Client, kind.NewList(), func(object client.Object) {
		targets = append(targets, newTarget(connection, kind, object.GetNamespace(), object.GetName()))
	}, client.InNamespace(probe.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, probe.failed(err, "list")
	}
	if len(targets) == 0 {
		return nil, exit.Failure(fmt.Errorf("no %s with the labels %s%s", kind.Resource, o.selector.Text, cluster.Where(connection.Namespace)))
	}
	return targets, nil
}

// inFiles returns the objects of the files.
func (o *options) inFiles(connection cluster.Connection) ([]*target, error) {
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().
		FilenameParam(false, &resource.FilenameOptions{Filenames: o.files}).Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	var targets []*target
	var others []string
	for _, info := range infos {
		gvk := info.Object.GetObjectKind().GroupVersionKind()
		kind := kinds.ByGroupKind(schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind})
		if kind == nil {
			others = append(others, strings.ToLower(gvk.Kind)+"/"+info.Name)
			continue
		}
		namespace := connection.Namespace
		if info.Namespace != "" {
			if explicit := ptr.Deref(o.cluster.Namespace, ""); explicit != "" && explicit != info.Namespace {
				return nil, fmt.Errorf("--namespace: %q is invalid: the namespace of %s in the file is %q", explicit, info.Name, info.Namespace)
			}
			namespace = info.Namespace
		}
		targets = append(targets, newTarget(connection, kind, namespace, info.Name))
	}
	if slices.Contains(o.files, "-") && len(targets) == 0 {
		return nil, errors.New("--filename: - is invalid: must be a file, a folder or a URL, because the objects are not of apps.kruise.io")
	}
	if len(targets) > 0 && len(others) > 0 {
		if _, err := fmt.Fprintf(o.ErrOut, "Ignored objects of other groups: %s\n", strings.Join(others, ", ")); err != nil {
			return nil, exit.Failure(fmt.Errorf("print a warning: %w", err))
		}
		others = nil
	}
	return targets, mixed(targets, others)
}

// kubectlArgs returns the arguments with which kubectl does the same.
func (o *options) kubectlArgs(cmd *cobra.Command) []string {
	args := []string{"rollout", o.name}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			for _, value := range values.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+flag.Name+"="+flag.Value.String())
	})
	return append(append(args, "--"), o.args...)
}

// runKubectl runs kubectl, which prints its own errors.
func (o *options) runKubectl(ctx context.Context, args []string) error {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return exit.Failure(fmt.Errorf("objects of other groups than apps.kruise.io need kubectl: %w", err))
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Stdin, command.Stdout, command.Stderr = o.In, o.Out, o.ErrOut
	if err := command.Run(); err != nil {
		return exit.Failure(fmt.Errorf("kubectl rollout %s: %w", o.name, err))
	}
	return nil
}
