// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package initialize implements `seamark init`, which writes the manifest of a marker from flags. A package cannot be
// imported by the name init.
package initialize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/template"
	"github.com/seamark-dev/seamark/internal/manifest/document"
)

// Options are the flags of `seamark init`, which New describes.
type Options struct {
	genericiooptions.IOStreams
	// marker has what flags set directly, and probe is its only probe.
	marker                *v1alpha1.PodProbeMarker
	probe                 *v1alpha1.PodContainerProbe
	Exec, HTTP, TCP, GRPC string
	Selector, File        string
	// Workload is the file with the workload, or empty.
	Workload                    string
	Labels, Annotations         []string
	LabelsFrom, AnnotationsFrom []string
	Delay, Period, Limit        time.Duration
	// Recipe is the name of the recipe to write, or empty.
	Recipe      string
	List, Force bool
}

const long = `Write the manifest of a PodProbeMarker with one probe.

The manifest has a comment for each field, and is checked as by "seamark lint" before it is
written.

Exactly one of --exec, --http, --tcp and --grpc is required, --selector or --filename, and at least
one mark or --condition.

-f FILE names a manifest with one workload: a Deployment, ReplicaSet, StatefulSet or DaemonSet, also of
apps.kruise.io, or a CloneSet. Its selector, namespace and name are those of the marker, and
its only container is probed, unless flags set others. The marker is compared with the workload.

A mark is KEY=SUCCEEDED,FAILED: the values in the two states. With KEY=VALUE, the key is
removed in the state Failed. KEY is short for KEY=true.

--label-from and --annotation-from set a mark to what the probe prints, in the state Succeeded: KEY
alone to the first line, KEY=PATH to a value of the JSON that it prints, such as
game.io/map=.map. Values after a comma are the only ones that take effect:
game.io/map=.map,dust,mill, or role=,primary,secondary for the first line.

--recipe NAME writes the files of a tested recipe for real software into a folder instead: a
marker, a workload that acts on it, a guard, and a page that explains them. --list lists the
recipes.

Exit codes: 0 for success, 1 if the file cannot be written, 2 for bad input.`

const example = `  # A label while a job runs
  seamark init --exec 'cat /tmp/job' -l app=worker --label busy

  # The role of a replica, as a label and as a condition
  seamark init --http /primary:http -l app=database --container postgres \
    --label role=primary,secondary --condition example.com/primary -o marker.yaml

  # The number of players that a server prints, for the pods of a CloneSet
  seamark init -f cloneset.yaml --exec 'cat /run/players' \
    --annotation-from controller.kubernetes.io/pod-deletion-cost

  # A marker, a StatefulSet and a guard for etcd, in the folder etcd
  seamark init --recipe etcd`

// New returns the command.
func New(streams genericiooptions.IOStreams, _, _ string) *cobra.Command {
	marker := &v1alpha1.PodProbeMarker{}
	marker.Spec.Probes = make([]v1alpha1.PodContainerProbe, 1)
	o := &Options{IOStreams: streams, marker: marker, probe: &marker.Spec.Probes[0]}
	command := &cobra.Command{
		Use:     "init (--exec COMMAND | --http PATH:PORT | --tcp PORT | --grpc PORT[/SERVICE]) (-l SELECTOR | -f FILE) | --recipe NAME | --list",
		Short:   "Write a marker from flags and a workload, or a recipe",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.List:
				return o.listRecipes()
			case o.Recipe != "":
				return o.writeRecipe()
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Recipe, "recipe", "", "recipe to write; with --output, into this folder (default the name of the recipe)")
	flags.BoolVar(&o.List, "list", false, "list the recipes")
	flags.StringVar(&o.Exec, "exec", "", "command to run in the container; a line that needs a shell runs in sh -c")
	flags.StringVar(&o.HTTP, "http", "", "request to send, as PATH:PORT with a number or the name of a port")
	flags.StringVar(&o.TCP, "tcp", "", "port to connect to, a number or the name of a port")
	flags.StringVar(&o.GRPC, "grpc", "", "port of a server with the gRPC health protocol, as PORT or PORT/SERVICE")
	flags.StringVarP(&o.Selector, "selector", "l", "", "labels of the pods, as in kubectl")
	flags.StringVarP(&o.Workload, "filename", "f", "", "manifest with the workload whose pods are probed, or - for the standard input")
	flags.StringVar(&o.probe.ContainerName, "container", "", "container to probe (default from the workload or the selector)")
	flags.StringVar(&marker.Name, "name", "", "name of the marker (default from the workload or the selector)")
	flags.StringVarP(&marker.Namespace, "namespace", "n", "", "namespace of the marker (default that of the workload, or none in the manifest)")
	flags.StringVar(&o.probe.Name, "probe", "", "name of the probe (default from the first label, condition or annotation)")
	flags.StringArrayVar(&o.Labels, "label", nil, "label to set, as KEY=SUCCEEDED,FAILED, KEY=VALUE or KEY (repeatable)")
	flags.StringArrayVar(&o.Annotations, "annotation", nil, "annotation to set, as KEY=SUCCEEDED,FAILED, KEY=VALUE or KEY (repeatable)")
	flags.StringArrayVar(&o.LabelsFrom, "label-from", nil, "label to set to what the probe prints, as KEY, KEY=PATH or KEY=PATH,VALUE,... (repeatable)")
	flags.StringArrayVar(&o.AnnotationsFrom, "annotation-from", nil, "annotation to set to what the probe prints, as for --label-from (repeatable)")
	flags.StringVar(&o.probe.PodConditionType, "condition", "", "type of the pod condition to set, such as example.com/busy")
	flags.DurationVar(&o.Delay, "initial-delay", 0, "time from the start of the container to the first run (default none)")
	flags.DurationVar(&o.Period, "period", 10*time.Second, "time from the start of a run to the next one")
	flags.DurationVar(&o.Limit, "timeout", time.Second, "time after which a run fails, at most 5m")
	flags.Int32Var(&o.probe.Probe.SuccessThreshold, "success-threshold", 1, "successes in a row until the state is Succeeded")
	flags.Int32Var(&o.probe.Probe.FailureThreshold, "failure-threshold", 3, "failures in a row until the state is Failed")
	flags.StringVarP(&o.File, "output", "o", "", "file to create (default the standard output)")
	flags.BoolVar(&o.Force, "force", false, "overwrite the file of --output, or those of the recipe")
	for _, name := range []string{"exec", "http", "tcp", "grpc", "selector", "filename", "list"} {
		command.MarkFlagsMutuallyExclusive("recipe", name)
	}
	return command
}

// Run builds the marker, checks it and writes it. exit.Code maps its error to an exit code.
func (o *Options) Run(ctx context.Context) error {
	named := o.probe.ContainerName != ""
	var w *workload
	if o.Workload != "" {
		var err error
		if w, err = o.readWorkload(ctx); err != nil {
			return fmt.Errorf("--filename: %w", err)
		}
	}
	if err := o.complete(w); err != nil {
		return err
	}
	content, err := template.YAML(o.marker)
	if err != nil {
		return exit.Failure(err)
	}
	if err := checkMarker(ctx, content, w); err != nil {
		return err
	}
	if o.File == "" {
		if _, err := printing.Raw(o.Out).Write(content); err != nil {
			return exit.Failure(fmt.Errorf("print marker: %w", err))
		}
	} else if err := o.write(content); err != nil {
		return err
	}
	if !named && w == nil {
		fmt.Fprintf(o.ErrOut, "Note: --container is not set: the marker probes the container %q. Check the name.\n", o.probe.ContainerName)
	}
	return nil
}

// checkMarker returns an error for each finding about the manifest, also compared with the workload unless it is nil. It names the
// flag.
func checkMarker(ctx context.Context, content []byte, w *workload) error {
	// No file has an empty name.
	manifests := []document.File{{Content: content}}
	if w != nil {
		manifests = append(manifests, w.file)
	}
	result := (&rules.Linter{}).Check(ctx, manifests)
	var errs []error
	for _, f := range result.Findings {
		if f.File != "" || !f.Severity.AtLeast(rules.Warning) {
			continue
		}
		message := f.Message
		if f.Fix != "" {
			message += ": " + f.Fix
		}
		errs = append(errs, fmt.Errorf("%s: %s", flagOf(f.Field), message))
	}
	return errors.Join(errs...)
}

// write creates the file of the marker.
func (o *Options) write(content []byte) error {
	if err := o.create(o.File, content); err != nil {
		return err
	}
	if o.Workload != "" {
		fmt.Fprintf(o.ErrOut, "Wrote %s.\n", o.File)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "Wrote %s. Check it together with the workload: seamark lint %s WORKLOAD.yaml\n", o.File, o.File)
	return nil
}

// create creates a file.
func (o *Options) create(path string, content []byte) error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if o.Force {
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o644)
	switch {
	case errors.Is(err, os.ErrExist):
		return existsError(path)
	case err != nil:
		return exit.Failure(fmt.Errorf("--output: %w", err))
	}
	_, err = bytes.NewReader(content).WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return exit.Failure(fmt.Errorf("--output: write %s: %w", path, err))
	}
	return nil
}

func existsError(path string) error {
	return fmt.Errorf("--output: %s exists: use another name, or --force to overwrite it", path)
}
