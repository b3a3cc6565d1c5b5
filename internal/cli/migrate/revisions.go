// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
)

// RevisionsOptions are the flags of `seamark migrate revisions`, which newRevisions describes.
type RevisionsOptions struct {
	genericiooptions.IOStreams
	Flags                  *cluster.Flags
	From, SeamarkNamespace string
	DryRun                 bool
}

const revisionsLong = `Copy the revisions of SidecarSets that OpenKruise has recorded in its own namespace to the
namespace of Seamark, with your permissions. Seamark accepts revisions only from its own namespace,
because everybody who can create a ControllerRevision may name a SidecarSet as its owner.

The namespace of OpenKruise must be one that only administrators can write to. Revisions that exist
are not changed, so that the command can be repeated.`

const revisionsExample = `  # Show what would be copied
  seamark migrate revisions --dry-run

  # Copy the revisions of an OpenKruise in another namespace
  seamark migrate revisions --from openkruise`

func newRevisions(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &RevisionsOptions{IOStreams: streams, Flags: cluster.NewFlags(streams, version)}
	command := &cobra.Command{
		Use:     "revisions",
		Short:   "Copy the revisions of SidecarSets from the namespace of OpenKruise",
		Long:    revisionsLong,
		Example: revisionsExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	command.Flags().StringVar(&o.From, "from", "kruise-system", "namespace of OpenKruise")
	command.Flags().StringVar(&o.SeamarkNamespace, "seamark-namespace", configv1alpha1.DefaultNamespace, "namespace of Seamark's programs")
	command.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be copied, and write nothing")
	return command
}

// Validate returns an error that names the first invalid flag.
func (o *RevisionsOptions) Validate() error {
	switch {
	case o.From == "":
		return errors.New("--from: must not be empty")
	case o.SeamarkNamespace == "" || o.SeamarkNamespace == o.From:
		return fmt.Errorf("--seamark-namespace: %q is invalid: must be another namespace than that of OpenKruise", o.SeamarkNamespace)
	}
	return nil
}

// Run copies the revisions.
func (o *RevisionsOptions) Run(ctx context.Context) error {
	connection, err := o.Flags.Connect()
	if err != nil {
		return err
	}
	var sets []*v1alpha1.SidecarSet
	if err := cluster.Each(ctx, connection.Client, &v1alpha1.SidecarSetList{}, func(set *v1alpha1.SidecarSet) { sets = append(sets, set) }); err != nil {
		return exit.Failure(fmt.Errorf("list sidecarsets: %w", err))
	}
	revisions := map[string][]*appsv1.ControllerRevision{}
	for namespace, which := range map[string][]client.ListOption{
		o.From:             {client.HasLabels{history.SetLabel}},
		o.SeamarkNamespace: nil,
	} {
		err := cluster.Each(ctx, connection.Client, &appsv1.ControllerRevisionList{}, func(revision *appsv1.ControllerRevision) {
			revisions[namespace] = append(revisions[namespace], revision)
		}, append(which, client.InNamespace(namespace))...)
		if err != nil {
			return exit.Failure(fmt.Errorf("list controllerrevisions of namespace %s: %w", namespace, err))
		}
	}
	copies, present, err := migration.Copies(sets, o.From, o.SeamarkNamespace, revisions[o.From], revisions[o.SeamarkNamespace])
	if err != nil {
		return exit.Failure(err)
	}
	return o.create(ctx, connection.Client, copies, present)
}

// create creates the copies.
func (o *RevisionsOptions) create(ctx context.Context, writer client.Client, copies []*appsv1.ControllerRevision, present int) error {
	var options []client.CreateOption
	done := "Copied"
	if o.DryRun {
		options, done = append(options, client.DryRunAll), "Would copy"
	}
	copied := 0
	for _, revision := range copies {
		err := writer.Create(ctx, revision, options...)
		if apierrors.IsAlreadyExists(err) {
			// seamark-workloads has recorded it since the list: a set is accepted as soon as the revision that it names is copied.
			live := &appsv1.ControllerRevision{}
			if err := writer.Get(ctx, client.ObjectKeyFromObject(revision), live); err == nil && migration.IsCopy(live, revision) {
				present++
				continue
			}
		}
		if err != nil {
			return exit.Failure(fmt.Errorf("create controllerrevision %s in namespace %s: %w", revision.Name, revision.Namespace, err))
		}
		copied++
		fmt.Fprintf(o.Out, "%s controllerrevision %s of SidecarSet %s, number %d\n", done, revision.Name, revision.Labels[history.SetLabel], revision.Revision)
	}
	fmt.Fprintf(o.Out, "%s %d revisions from namespace %s to namespace %s; %d exist there.\n", done, copied, o.From, o.SeamarkNamespace, present)
	return nil
}
