// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/internal/cli/printing"
)

// InitOptions are the options of `seamark init`.
type InitOptions struct {
	genericiooptions.IOStreams
	// Version is the version of the program.
	Version string

	// Exec, HTTP, TCP and GRPC define the handler. One of them is set.
	Exec, HTTP, TCP, GRPC string
	// Selector selects the pods, as in the -l flag of kubectl.
	Selector string
	// Name, Namespace, Probe and Container are names. Empty means the default.
	Name, Namespace, Probe, Container string
	// Labels and Annotations are marks as KEY, KEY=SUCCEEDED or KEY=SUCCEEDED,FAILED.
	Labels, Annotations []string
	// Condition is the type of the condition, or empty.
	Condition string
	// InitialDelay, Period and Timeout are whole seconds.
	InitialDelay, Period, Timeout time.Duration
	// SuccessThreshold and FailureThreshold are numbers of results in a row.
	SuccessThreshold, FailureThreshold int32
	// File is the file to create. Empty means the standard output.
	File string
	// Force overwrites the file.
	Force bool
}

const initLong = `Write the manifest of a PodProbeMarker with one probe.

The manifest has a comment for each field, and is checked as by "seamark lint" before it is
written. Without flags, the command asks questions on the terminal.

Exactly one of --exec, --http, --tcp and --grpc is required, --selector, and at least one of
--label, --annotation and --condition.

A mark is KEY=SUCCEEDED,FAILED: the values in the two states. With KEY=VALUE, the key is
removed in the state Failed. KEY is short for KEY=true.

Exit codes: 0 for success, 1 if the file cannot be written, 2 for bad input.`

const initExample = `  # A label while a job runs
  seamark init --exec 'cat /tmp/job' -l app=worker --label busy

  # The role of a replica, as a label and as a condition
  seamark init --http /primary:http -l app=database --container postgres \
    --label role=primary,secondary --condition example.com/primary -o marker.yaml

  # Answer questions
  seamark init -o marker.yaml`

func newInitCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &InitOptions{IOStreams: streams, Version: version}
	command := &cobra.Command{
		Use:     "init (--exec COMMAND | --http PATH:PORT | --tcp PORT | --grpc PORT[/SERVICE]) -l SELECTOR",
		Short:   "Write a marker from flags or questions",
		Long:    initLong,
		Example: initExample,
		Args:    cobra.NoArgs,

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Exec, "exec", "", "command to run in the container; a line that needs a shell runs in sh -c")
	flags.StringVar(&o.HTTP, "http", "", "request to send, as PATH:PORT with a number or the name of a port")
	flags.StringVar(&o.TCP, "tcp", "", "port to connect to, a number or the name of a port")
	flags.StringVar(&o.GRPC, "grpc", "", "port of a server with the gRPC health protocol, as PORT or PORT/SERVICE")
	flags.StringVarP(&o.Selector, "selector", "l", "", "labels of the pods, as in kubectl")
	flags.StringVar(&o.Container, "container", "", "container to probe (default from the selector)")
	flags.StringVar(&o.Name, "name", "", "name of the marker (default from the selector)")
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of the marker (default none in the manifest)")
	flags.StringVar(&o.Probe, "probe", "", "name of the probe (default from the first label, condition or annotation)")
	flags.StringArrayVar(&o.Labels, "label", nil, "label to set, as KEY=SUCCEEDED,FAILED, KEY=VALUE or KEY (repeatable)")
	flags.StringArrayVar(&o.Annotations, "annotation", nil, "annotation to set, as KEY=SUCCEEDED,FAILED, KEY=VALUE or KEY (repeatable)")
	flags.StringVar(&o.Condition, "condition", "", "type of the pod condition to set, such as example.com/busy")
	flags.DurationVar(&o.InitialDelay, "initial-delay", 0, "time from the start of the container to the first run (default none)")
	flags.DurationVar(&o.Period, "period", 10*time.Second, "time from the start of a run to the next one")
	flags.DurationVar(&o.Timeout, "timeout", time.Second, "time after which a run fails, at most 5m")
	flags.Int32Var(&o.SuccessThreshold, "success-threshold", 1, "successes in a row until the state is Succeeded")
	flags.Int32Var(&o.FailureThreshold, "failure-threshold", 3, "failures in a row until the state is Failed")
	flags.StringVarP(&o.File, "output", "o", "", "file to create (default the standard output)")
	flags.BoolVar(&o.Force, "force", false, "overwrite the file of --output")
	return command
}

// Complete asks for what the flags do not contain, if they contain nothing about the marker and the
// standard input is a terminal.
func (o *InitOptions) Complete() error {
	for _, given := range []string{o.Exec, o.HTTP, o.TCP, o.GRPC, o.Selector, o.Condition} {
		if given != "" {
			return nil
		}
	}
	if len(o.Labels)+len(o.Annotations) > 0 {
		return nil
	}
	in, isFile := o.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return errors.New("specify the probe by flags, such as --exec 'cat /tmp/job' -l app=worker --label busy: " +
			"without a terminal, init cannot ask questions")
	}
	return o.ask(in, o.ErrOut)
}

// Run builds the marker, checks it and writes it. exit.Code maps its error to an exit code.
func (o *InitOptions) Run(ctx context.Context) error {
	marker, err := o.marker()
	if err != nil {
		return err
	}
	content, err := marker.YAML()
	if err != nil {
		return exit.Failure(err)
	}
	if err := checkMarker(ctx, content); err != nil {
		return err
	}
	if o.File == "" {
		if _, err := printing.Raw(o.Out).Write(content); err != nil {
			return exit.Failure(fmt.Errorf("print marker: %w", err))
		}
	} else if err := o.write(content); err != nil {
		return err
	}
	if o.Container == "" {
		fmt.Fprintf(o.ErrOut, "Note: --container is not set: the marker probes the container %q. Check the name.\n", marker.Container)
	}
	return nil
}

// checkMarker returns an error for each finding about the manifest, which names its flag.
func checkMarker(ctx context.Context, content []byte) error {
	result, err := (&lint.Linter{}).Check(ctx, []lint.File{{Name: "marker", Content: content}})
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range result.Findings {
		if !f.Severity.AtLeast(lint.Warning) {
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

// write creates the file.
func (o *InitOptions) write(content []byte) error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if o.Force {
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(o.File, mode, 0o644)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("--output: %s exists: use another name, or --force to overwrite it", o.File)
	case err != nil:
		return exit.Failure(fmt.Errorf("--output: %w", err))
	}
	_, err = bytes.NewReader(content).WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return exit.Failure(fmt.Errorf("--output: write %s: %w", o.File, err))
	}
	fmt.Fprintf(o.ErrOut, "Wrote %s. Check it together with the workload: seamark lint %s WORKLOAD.yaml\n", o.File, o.File)
	return nil
}
