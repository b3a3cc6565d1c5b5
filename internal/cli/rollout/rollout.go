// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout implements `seamark rollout`: the commands of `kubectl rollout` for the sets and jobs of apps.kruise.io, for
// which kubectl has none. Names, the main flags and output are those of kubectl; objects of other groups are passed to it.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/group"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

const long = `Watch, pause, restart and undo rollouts, as kubectl rollout does for the kinds of Kubernetes.

Names of kinds that Seamark serves mean its own: statefulset/db is statefulsets.apps.kruise.io/db.
Other objects, such as deployment/web or statefulsets.apps/db, are passed to kubectl.

Several kinds are separated by commas: cloneset,statefulset -l app=game. Only pause, resume and
restart have --field-manager, as in kubectl. A kustomization must not refer to other machines.`

// The placeholder is the name of the program.
const example = `  # Change the image, and wait until all pods run it
  %[1]s set image cloneset/arena main=arena:2
  %[1]s rollout status cloneset/arena --timeout=5m

  # Show what the revisions have changed, and return to the one before
  %[1]s rollout history cloneset/arena
  %[1]s rollout undo cloneset/arena

  # Replace all pods of a StatefulSet, within its budget
  %[1]s rollout restart statefulset/db`

// options are what the commands have in common.
type options struct {
	*target.Flags
	// name is the name of the command, and program is how users call the program.
	name, program string
	now           func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	command := &cobra.Command{
		Use: "rollout SUBCOMMAND", Short: "Watch, pause, restart and undo rollouts", Long: long, Example: fmt.Sprintf(example, program),
		Args: group.RejectUnknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, add := range []func(o *options) *cobra.Command{newStatus, newHistory, newUndo, newPause, newResume, newRestart} {
		command.AddCommand(add(newOptions(streams, program, version)))
	}
	exit.AsKubectl(command)
	return command
}

func newOptions(streams genericiooptions.IOStreams, program, version string) *options {
	o := &options{Flags: target.NewFlags(streams, version), program: program, now: time.Now}
	o.FieldManager = "seamark-rollout"
	return o
}

// command returns a subcommand with the flags that all have. run is called for each object.
func (o *options) command(use, short, help string, run func(ctx context.Context, t *object) error) *cobra.Command {
	o.name, _, _ = strings.Cut(use, " ")
	o.Command = []string{"rollout", o.name}
	command := &cobra.Command{
		Use: use + " (KIND/NAME... | KIND NAME... | KIND -l LABELS | -f FILE | -k FOLDER)", Short: short, Long: short + ".\n\n" + help,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.Run(cmd, args, args, func(ctx context.Context, t *target.Target) error {
				return run(ctx, &object{Target: t, program: o.program, manager: o.FieldManager})
			})
		},
	}
	o.AddTo(command)
	return command
}

// object is the object that a command is about.
type object struct {
	*target.Target
	// content is the object as it was read last.
	content kinds.Object
	// program is how users call the program.
	program string
	// manager is the name of the writer.
	manager string
	// pinned is the name of the only revision that is waited for, empty for any.
	pinned string
}

// short returns the kind and the name in quotation marks, as kubectl writes them in messages of rollouts.
func (t *object) short() string { return fmt.Sprintf("%s %q", strings.ToLower(t.Kind.Kind), t.Name) }

// set returns the object as a set. The error says that the command does not support its kind.
func (t *object) set(command string) (setview.View, error) {
	view, ok := setview.Of(t.content)
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
func (t *object) read(ctx context.Context) error {
	t.content = t.Kind.New()
	return t.Read(ctx, t.content)
}

// byName selects the object in lists and watches.
func (t *object) byName() client.ListOption {
	return client.MatchingFields{metav1.ObjectNameField: t.Name}
}

// list reads the object by a list from which it can be watched. An object that was found in a list is not listed again. A user who may
// only get it gets a list without a version, from which a watch begins with the current object.
func (t *object) list(ctx context.Context) (client.ObjectList, error) {
	list := t.Kind.NewList()
	if t.Listed != nil {
		return list, t.takeFrom(t.Listed, list)
	}
	err := t.Client.List(ctx, list, client.InNamespace(t.Namespace), t.byName())
	if apierrors.IsForbidden(err) {
		if failed := t.read(ctx); exit.Code(failed) != exit.Access {
			return list, errors.Join(failed, meta.SetList(list, []runtime.Object{t.content}))
		}
	}
	if err != nil {
		return nil, t.FailedTo("list", permission.Resource(t.Kind.Definition()), err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		t.content, _ = item.(kinds.Object)
		return nil
	})
	if err == nil && t.content == nil {
		err = t.NotFound(ctx)
	}
	return list, err
}

// takeFrom reads the object from the list in which it was found into one of its kind.
func (t *object) takeFrom(listed *unstructured.UnstructuredList, into client.ObjectList) error {
	into.SetResourceVersion(listed.GetResourceVersion())
	for i := range listed.Items {
		if client.ObjectKeyFromObject(&listed.Items[i]) != t.Key() {
			continue
		}
		t.content = t.Kind.New()
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(listed.Items[i].Object, t.content)
		if err == nil {
			err = meta.SetList(into, []runtime.Object{t.content})
		}
		if err != nil {
			return exit.Failure(fmt.Errorf("decode %s: %w", t, err))
		}
	}
	return nil
}

// command returns a command of this program about the object.
func (t *object) command(name string) string {
	command := t.program + " " + name + " " + strings.ToLower(t.Kind.Kind) + "/" + t.Name
	if t.Namespace != "" {
		command += " -n " + t.Namespace
	}
	return command
}
