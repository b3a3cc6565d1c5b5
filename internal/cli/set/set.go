// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package set implements `seamark set image`: the command of kubectl for the sets of apps.kruise.io, for which kubectl has none.
// Names, the main flags and output are those of kubectl; objects of other groups are passed to it.
package set

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/group"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/target"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	return newCommand(target.NewFlags(streams, version, "set", "image"), program)
}

func newCommand(flags *target.Flags, program string) *cobra.Command {
	const short = "Change the images of sets"
	command := &cobra.Command{
		Use: "set SUBCOMMAND", Short: short, Long: short + ", as kubectl set does for the kinds of Kubernetes.",
		Args: group.RejectUnknown,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	command.AddCommand(newImage(flags, program))
	exit.AsKubectl(command)
	return command
}

const imageLong = `Change the images of containers, as kubectl set image does for the kinds of Kubernetes.

CONTAINER is the name of a container or of an init container of the template of a CloneSet, a
StatefulSet or a DaemonSet, or of a SidecarSet; '*' means all. Nothing else changes, also if
others change the object at the same time. An object that has the images already is not printed.

Names of kinds that Seamark serves mean its own: statefulset/db is statefulsets.apps.kruise.io/db.
Other objects, such as deployment/web or statefulsets.apps/db, are passed to kubectl. Several kinds
are separated by commas. A kustomization must not refer to other machines.`

// The placeholder is the name of the program.
const imageExample = `  # Change the image of a container, and wait until all pods run it
  %[1]s set image cloneset/arena main=arena:2
  %[1]s rollout status cloneset/arena

  # Print what would change
  %[1]s set image statefulset db main=db:2 init=db-init:2 --dry-run=server -o yaml

  # Change the image in all DaemonSets with a label
  %[1]s set image daemonset -l tier=node '*=agent:2'`

// image is `seamark set image`.
type image struct {
	*target.Flags
	dryRun  target.DryRun
	output  *genericclioptions.PrintFlags
	printer printers.ResourcePrinter
	images  []pair
}

func newImage(flags *target.Flags, program string) *cobra.Command {
	i := &image{Flags: flags, output: genericclioptions.NewPrintFlags("image updated")}
	command := &cobra.Command{
		Use:     "image (KIND/NAME... | KIND NAME... | KIND -l LABELS | KIND --all | -f FILE | -k FOLDER) CONTAINER=IMAGE...",
		Short:   "Change the images of containers",
		Long:    imageLong,
		Example: fmt.Sprintf(imageExample, program),
		RunE:    i.run,
	}
	i.AddTo(command)
	command.Flags().BoolVar(&i.All, "all", false, "all objects of the kind in the namespace")
	i.FieldManager = "seamark-set"
	i.AddFieldManagerTo(command)
	i.dryRun.AddTo(command)
	i.output.AddFlags(command)
	return command
}

func (i *image) run(cmd *cobra.Command, args []string) error {
	if err := i.dryRun.Validate(); err != nil {
		return err
	}
	names, images, err := split(args)
	if err != nil {
		return err
	}
	i.images = images
	if err := i.output.Complete("%s" + i.dryRun.Suffix()); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if i.printer, err = i.output.ToPrinter(); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return i.Run(cmd, names, args, i.set)
}

// pair is an image for a container, or for all if its name is *.
type pair struct{ container, image string }

// all is the name that means all containers.
const all = "*"

// split returns the names of objects and the images among the arguments.
func split(args []string) (names []string, images []pair, err error) {
	for _, arg := range args {
		container, image, isPair := strings.Cut(arg, "=")
		switch {
		case !isPair && len(images) > 0:
			return nil, nil, fmt.Errorf("%q is invalid: must be CONTAINER=IMAGE, because objects are named before images", arg)
		case !isPair:
			names = append(names, arg)
			continue
		case container == "" || image == "" || strings.TrimSpace(image) != image:
			return nil, nil, fmt.Errorf("%q is invalid: must be CONTAINER=IMAGE, without blanks", arg)
		case slices.ContainsFunc(images, func(p pair) bool { return p.container == container }):
			return nil, nil, fmt.Errorf("%q is invalid: the container %s has an image already", arg, container)
		}
		images = append(images, pair{container, image})
	}
	switch {
	case len(images) == 0 && len(args) > 1:
		return nil, nil, fmt.Errorf("an image is required: %q is not CONTAINER=IMAGE", args[len(args)-1])
	case len(images) == 0:
		return nil, nil, errors.New("an image is required: CONTAINER=IMAGE")
	case len(images) > 1 && slices.ContainsFunc(images, func(p pair) bool { return p.container == all }):
		return nil, nil, errors.New("*=IMAGE is invalid: must be the only image, because * means all containers")
	}
	return names, images, nil
}

// set changes the images of an object, and prints it.
func (i *image) set(ctx context.Context, t *target.Target) error {
	path := pathOfPod(t.Kind)
	if path == nil {
		return exit.Failure(fmt.Errorf("%s: set image supports only %s", t, strings.Join(supported(), ", ")))
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(t.Kind.GroupVersionKind)
	if err := t.Read(ctx, object); err != nil {
		return err
	}
	operations, err := change(object.Object, path, i.images)
	switch {
	case err != nil:
		return exit.Failure(fmt.Errorf("%s: %w", t, err))
	case len(operations) == 0:
		return nil
	case !i.dryRun.Client():
		err = t.Patch(ctx, object, types.JSONPatchType, operations, append(i.dryRun.Options(), client.FieldOwner(i.FieldManager))...)
	}
	if err != nil {
		return err
	}
	return exit.Failure(i.print(object))
}

func (i *image) print(object *unstructured.Unstructured) error {
	out := i.Out
	if format := i.output.OutputFormat; format != nil && *format != "" && *format != "name" {
		out = printing.Raw(out)
	}
	if err := i.printer.PrintObj(object, out); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// pathOfPod returns the path of the specification of the pods, or of what is injected into them. It is nil if the objects of the kind
// do not update pods.
func pathOfPod(kind *kinds.Kind) []string {
	switch kind.Role {
	case kinds.Set:
		return []string{"spec", "template", "spec"}
	case kinds.Injector:
		return []string{"spec"}
	case kinds.Job:
	}
	return nil
}

// supported returns the kinds that have images.
func supported() (names []string) {
	for _, kind := range kinds.Table() {
		if pathOfPod(&kind) != nil {
			names = append(names, kind.Kind)
		}
	}
	return names
}
