// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/cli/migrate/survey"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// CheckOptions are the flags of `seamark migrate check`, which newCheck describes.
type CheckOptions struct {
	genericiooptions.IOStreams
	Flags     *cluster.Flags
	Filenames []string
	Back      bool
	// AllowRemote permits to read manifests from other machines.
	AllowRemote bool
	Output      printing.Report
}

const checkLong = `Show what would change if Seamark took over from OpenKruise, before anything is
modified: values that markers leave unset, fields that Seamark refuses, keys that others set
too, marks that no marker declares, pods on virtual nodes, sets and jobs of apps.kruise.io that
Seamark does not serve or treats differently, a manager of OpenKruise without the lease that Seamark looks for, and other kinds of
OpenKruise that are in use.

With --back, show what would change for markers and sets with pods if OpenKruise took over again:
what its webhooks would refuse, and sets whose pods it would update.

A finding that "blocks" must be changed before the migration; one that "changes" behaves
differently afterwards. Without --namespace, all namespaces are checked. The command only reads.
With files, it checks these and needs no cluster: it then knows nothing about pods, nodes
and other kinds, and not whether OpenKruise accepts the manifests. Folders are read as by "seamark lint":
with all their subfolders, and kustomizations are built. Nothing is downloaded unless --allow-remote is set.

Exit codes: 0 if nothing blocks; 1 if something blocks; 2 for bad input, also if the files have
nothing to check; 3 if nothing blocks, but
something could not be read, or the cluster cannot be reached.`

const checkExample = `  # Check the whole cluster
  seamark migrate check

  # Check one namespace, with the permissions of its users
  seamark migrate check -n game

  # Check manifests without a cluster
  seamark migrate check manifests/

  # Check before a return to OpenKruise
  seamark migrate check --back`

func newCheck(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &CheckOptions{IOStreams: streams, Flags: cluster.NewFlags(streams, version), Output: printing.Text}
	command := &cobra.Command{
		Use:     "check [FILE...]",
		Short:   "Show what a migration from OpenKruise would change",
		Long:    checkLong,
		Example: checkExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Filenames, err = files.Join(o.Filenames, args); err != nil {
				return err //nolint:wrapcheck // it names the value
			}
			if err := o.Output.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.Flags.AddTo(command)
	command.Flags().StringArrayVarP(&o.Filenames, "filename", "f", nil,
		"file, folder or URL with manifests to check instead of the cluster, or - for the standard input (repeatable; also as arguments)")
	command.Flags().BoolVar(&o.Back, "back", false, "check a return to OpenKruise")
	command.Flags().BoolVar(&o.AllowRemote, "allow-remote", false, "read manifests from URLs, and the remote parts of kustomizations")
	o.Output.AddTo(command)
	return command
}

// Run reads the cluster or the files and prints the findings.
func (o *CheckOptions) Run(ctx context.Context) error {
	objects, unread, err := o.read(ctx)
	if err != nil {
		return err
	}
	objects.Now = time.Now()
	found, err := o.check(ctx, objects)
	if err != nil {
		return exit.Failure(err)
	}
	report := checkReport{
		Findings: slices.Concat([]migration.Finding{}, found),
		Markers:  len(objects.Markers), Objects: map[string]int{}, files: objects.Files && !o.Back,
	}
	for _, kind := range kinds.Table() {
		report.Objects[kind.Kind] = len(objects.Objects[kind.Kind])
	}
	for _, each := range unread {
		report.Unread = append(report.Unread, each.What)
		fmt.Fprintf(o.ErrOut, "Warning: %v\n", each.Err)
	}
	if err := o.Output.Print(o.Out, report, report.print); err != nil {
		return exit.Failure(err)
	}
	return report.verdict()
}

func (o *CheckOptions) check(ctx context.Context, objects migration.Cluster) ([]migration.Finding, error) {
	if o.Back {
		return migration.CheckBack(objects)
	}
	return migration.Check(ctx, objects)
}

// read returns the objects, and what could not be read because of missing permissions.
func (o *CheckOptions) read(ctx context.Context) (migration.Cluster, []survey.Unread, error) {
	if len(o.Filenames) > 0 {
		objects, err := o.readFiles(ctx)
		return objects, nil, err
	}
	connection, err := o.Flags.Connect()
	if err != nil {
		return migration.Cluster{}, nil, err
	}
	// The namespace of the context says nothing about what is migrated.
	read := survey.Read
	if o.Back {
		read = survey.ReadBack
	}
	objects, unread := read(ctx, connection.Client, *o.Flags.Namespace)
	for _, each := range unread {
		if !apierror.IsDenied(each.Err) {
			return migration.Cluster{}, nil, cluster.Unreachable(each.Err)
		}
	}
	return objects, unread, nil
}

// readFiles returns the objects of OpenKruise in the files. It ignores all other objects. The error names each kind that does not
// exist.
func (o *CheckOptions) readFiles(ctx context.Context) (migration.Cluster, error) {
	c := migration.Cluster{Files: true, Places: map[string]string{}}
	manifests, err := (&files.Loader{Stdin: o.In, AllowRemote: o.AllowRemote}).Load(ctx, o.Filenames)
	if err != nil {
		return c, err //nolint:wrapcheck // it names the file
	}
	for _, file := range manifests {
		objects, err := file.Objects()
		if err != nil {
			return c, err //nolint:wrapcheck // it names the file
		}
		c.Add(objects...)
	}
	var errs []error
	for _, f := range (&rules.Linter{}).Check(ctx, manifests).Findings {
		isMarker := strings.HasPrefix(f.Object, migration.MarkerKind+" ")
		switch {
		case f.Severity == rules.Error && (f.Field == "kind" || f.Field == "apiVersion" && isMarker):
			errs = append(errs, f.Err())
		case f.Line > 0:
			c.Places[f.Object+" "+f.Field] = f.Place()
		}
	}
	if len(errs) > 0 {
		return c, errors.Join(errs...)
	}
	if len(c.Markers)+len(c.Objects)+len(c.Definitions) == 0 {
		return c, fmt.Errorf("%s: nothing to check: must have an object of apps.kruise.io, such as %s", strings.Join(o.Filenames, ", "), migration.MarkerKind)
	}
	return c, nil
}

// checkReport is the output for programs.
type checkReport struct {
	// Findings are ordered: those that block come first.
	Findings []migration.Finding `json:"findings"`
	// Markers is the number of checked markers, and Objects that of the other checked objects by kind.
	Markers int            `json:"markers"`
	Objects map[string]int `json:"objects"`
	// Unread is what could not be read because of missing permissions.
	Unread []string `json:"unread,omitempty"`
	// files is whether manifests were checked instead of a cluster.
	files bool
}

func (r checkReport) blocking() int {
	blocking := 0
	for _, f := range r.Findings {
		if f.Level == migration.Blocks {
			blocking++
		}
	}
	return blocking
}

func (r checkReport) verdict() error {
	switch blocking := r.blocking(); {
	case blocking > 0:
		return exit.Failure(fmt.Errorf("%d of %d findings block a migration", blocking, len(r.Findings)))
	case len(r.Unread) > 0:
		return exit.NoAccess(fmt.Errorf("the check is not complete because of missing permissions: %d lists could not be read", len(r.Unread)))
	}
	return nil
}

func (r checkReport) print(out io.Writer) error {
	painter := printing.NewPainter(out)
	for _, same := range grouped(r.Findings) {
		f := same[0]
		fmt.Fprint(printing.Raw(out), painter.Word(fmt.Sprintf("%-7s", f.Level)))
		fmt.Fprintf(out, "  %s", objects(same))
		if f.Field != "" {
			fmt.Fprintf(out, "  %s", f.Field)
		}
		fmt.Fprintf(out, "\n         OpenKruise: %s\n         Seamark:    %s\n", f.OpenKruise, f.Seamark)
		if f.Place != "" && len(same) == 1 {
			fmt.Fprintf(out, "         place:      %s\n", f.Place)
		}
		if f.Action != "" {
			fmt.Fprintf(out, "         action:     %s\n", f.Action)
		}
		if f.Pods != "" && len(same) == 1 {
			fmt.Fprintf(out, "         pods:       %s\n", f.Pods)
		}
	}
	checked := []string{text.Count(r.Markers, migration.MarkerKind)}
	for _, kind := range kinds.Table() {
		checked = append(checked, text.Count(r.Objects[kind.Kind], kind.Kind))
	}
	last := len(checked) - 1
	_, err := fmt.Fprintf(out, "Checked %s and %s: %s, of which %d block a migration.\n",
		strings.Join(checked[:last], ", "), checked[last], text.Count(len(r.Findings), "finding"), r.blocking())
	if err == nil && r.files {
		_, err = fmt.Fprintln(out, "The manifests were checked by the rules of Seamark. Whether OpenKruise accepts them was not checked.")
	}
	if err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	return nil
}

// grouped returns the findings in groups of those that differ in their objects only.
func grouped(findings []migration.Finding) [][]migration.Finding {
	var groups [][]migration.Finding
	places := map[migration.Finding]int{}
	for _, f := range findings {
		key := f
		key.Namespace, key.Name, key.Pods, key.Place = "", "", "", ""
		i, known := places[key]
		if !known {
			i, places[key] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// objects returns the objects of findings of one kind.
func objects(same []migration.Finding) string {
	names := make([]string, 0, len(same))
	for _, f := range same {
		names = append(names, strings.TrimPrefix(f.Object(), f.Kind+" "))
	}
	return same[0].Kind + " " + text.List(names, text.MaxNames)
}
