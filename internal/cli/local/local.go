// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local implements `seamark local`, which runs pods as processes on this machine. Package internal/local runs them,
// and this package reads the manifests, shows the changes and says whether the expressions were met.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/web/loopback"
)

// Options are the flags of `seamark local`, which New describes, and what Complete makes of them.
type Options struct {
	genericiooptions.IOStreams
	// pods are the options of the run that flags set directly.
	pods local.Options

	Filenames, Commands, Until         []string
	Kustomize, Output, UI              string
	AllowRemote, Strict, Logs, Verbose bool
	Timeout                            time.Duration
	// Replicas is negative if the flag is not set.
	Replicas int32

	expressions []until.Expression
	terminal    bool
	newRunner   func(local.Options) (runner, error)
	// system is the operating system, in Go's names.
	system string
	// interrupts receives one signal per Ctrl-C.
	interrupts chan os.Signal
}

// runner runs pods. local.Runner implements it.
type runner interface {
	Run(ctx context.Context) error
	Kill()
	Snapshot() []local.PodView
	Warnings() []string
}

const long = `Run pods as processes on this machine, without a cluster, a container runtime or root
privileges, and show what a cluster would show: the startup, liveness and readiness probes,
the probes of PodProbeMarkers, restarts, conditions, events, and the marks on the pods.

The command reads Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs,
PodProbeMarkers, ConfigMaps, Secrets, PersistentVolumeClaims, and the CloneSets, StatefulSets,
DaemonSets and SidecarSets of apps.kruise.io, from files, folders and URLs or a kustomization (-k).
-f FILE is the same as FILE. Folders are read as by "seamark lint": with all their subfolders, and
kustomizations are built.
Images are not pulled: each container needs a command that exists on this machine, from the
manifest or --command.

The commands in the manifests run on this machine, with your permissions. Manifests from URLs, and
kustomizations with remote parts, are refused unless --allow-remote is set.

On a terminal, the output is a live table: / filters it, p pauses it, q quits. Otherwise
each change is one line. The run ends on Ctrl-C, after --timeout, or when all --until
expressions are met. A second Ctrl-C kills all processes.

An --until expression selects pods by a name or a glob, and states a requirement that all
of them must meet:

  pod/NAME condition=TYPE:STATUS      STATUS is True, False or Unknown
  pod/NAME label=KEY:VALUE            or KEY for any value, !KEY for no such label
  pod/NAME annotation=KEY:VALUE       same as for labels
  pod/NAME event=REASON[:TEXT]        occurred at least once, with TEXT in its message
  pod/NAME restarts=N                 at least N, counted over all containers

Exit codes: 0 if all expressions were met or none were given, 1 if the run ended before
that, 2 for bad input.`

const example = `  # Watch the marks of the game servers
  seamark local examples/game-server

  # Test in CI that a probe finds the primary within 30 seconds
  seamark local database.yaml -o json --timeout 30s \
    --until 'pod/database-0 label=role:primary' --until 'pod/database-* condition=Ready:True'`

// New returns the command.
func New(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	o := &Options{IOStreams: streams, pods: local.Options{Version: version}, Replicas: -1}
	command := &cobra.Command{
		Use:     "local (FILE... | -k FOLDER)",
		Short:   "Run pods as local processes and show their probe results",
		Long:    long,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(cmd.Flags().Changed("replicas")); err != nil {
				return err
			}
			signal.Notify(o.interrupts, os.Interrupt, syscall.SIGTERM)
			defer signal.Stop(o.interrupts)
			return o.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&o.Filenames, "filename", "f", nil, "file, folder or URL with manifests, or - for the standard input (repeatable; also as arguments)")
	flags.StringVarP(&o.Kustomize, "kustomize", "k", "", "folder with a kustomization")
	flags.BoolVar(&o.AllowRemote, "allow-remote", false, "read manifests from URLs and remote parts of a kustomization, and run their commands")
	flags.StringArrayVar(
		&o.Commands, "command", nil, "shell command to run in a container instead of its command and args, as CONTAINER='COMMAND' (repeatable)",
	)
	flags.Int32Var(&o.Replicas, "replicas", o.Replicas, "number of pods of each workload, except DaemonSets, Jobs and CronJobs (default from the manifest)")
	flags.StringVarP(&o.Output, "output", "o", "", "output format: text or json (default a table on a terminal, otherwise text)")
	flags.StringArrayVar(&o.Until, "until", nil, "end the run when this is met, for example 'pod/NAME condition=TYPE:STATUS' (repeatable)")
	flags.DurationVar(&o.Timeout, "timeout", 0, "end the run after this time, with exit code 1 if an --until expression is not met (default never)")
	flags.BoolVar(&o.Strict, "strict", false, "reject problems of markers, and unsupported kinds and fields that can affect probes, instead of warning")
	flags.BoolVar(&o.pods.SharedAddress, "shared-address", false, "give all pods the address 127.0.0.1, for systems without other loopback addresses")
	flags.DurationVar(&o.pods.CrashLoopInitial, "crash-loop-initial", 0, "initial delay before a crashed container is restarted (default 10s)")
	flags.DurationVar(&o.pods.CrashLoopMax, "crash-loop-max", 0, "maximum delay before a crashed container is restarted (default 5m)")
	flags.StringVar(&o.UI, "ui", "", "serve a web page of the run on this loopback address, and print its URL")
	flags.BoolVar(&o.Logs, "logs", false, "show the output of the containers")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "show standard conditions other than Ready, and how the pods are stopped")
	flags.Lookup("ui").NoOptDefVal = "127.0.0.1:0"
	// The usage text states the default. pflag does not print a default of 0.
	flags.Lookup("replicas").DefValue = "0"
	return command
}

// Complete adds the files of the arguments, parses the expressions and sets the defaults.
func (o *Options) Complete(args []string) error {
	var err error
	if o.Filenames, err = files.Join(o.Filenames, args); err != nil {
		return err //nolint:wrapcheck // it names the value
	}
	for _, text := range o.Until {
		expression, err := until.Parse(text)
		if err != nil {
			return fmt.Errorf("--until: %w", err)
		}
		o.expressions = append(o.expressions, expression)
	}
	o.terminal = o.Output == "" && printing.HasScreen(o.Out)
	o.interrupts = make(chan os.Signal, 2)
	o.system = runtime.GOOS
	o.newRunner = func(options local.Options) (runner, error) { return local.New(options) }
	return nil
}

// Validate checks the flags. The error names each invalid flag and the allowed values.
func (o *Options) Validate(replicasGiven bool) error {
	var errs []error
	if o.system == "windows" {
		// Without process groups, a run could not stop what the containers have started.
		return errors.New("seamark local does not run on Windows: run it in the Windows Subsystem for Linux")
	}
	if len(o.Filenames) == 0 && o.Kustomize == "" {
		errs = append(
			errs, errors.New("FILE or --kustomize is required: specify a file, a folder, a URL, or - for the standard input, or a folder with a kustomization"),
		)
	}
	if o.UI != "" {
		if err := loopback.Validate(o.UI); err != nil {
			errs = append(errs, fmt.Errorf("--ui: %w", err))
		}
	}
	switch o.Output {
	case "", "text", "json":
	default:
		errs = append(errs, fmt.Errorf("--output: %q is invalid: must be text or json", o.Output))
	}
	if replicasGiven && (o.Replicas < 0 || o.Replicas > manifest.MaxReplicas) {
		errs = append(errs, fmt.Errorf("--replicas: %d is invalid: must be between 0 and %d", o.Replicas, manifest.MaxReplicas))
	}
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{
		{"--timeout", o.Timeout},
		{"--crash-loop-initial", o.pods.CrashLoopInitial},
		{"--crash-loop-max", o.pods.CrashLoopMax},
	} {
		if flag.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is invalid: must not be negative", flag.name, flag.value))
		}
	}
	if longest := cmp.Or(o.pods.CrashLoopMax, lifecycle.DefaultCrashLoopMax); longest > 0 && o.pods.CrashLoopInitial > longest {
		errs = append(errs, fmt.Errorf("--crash-loop-initial: %s is invalid: must not exceed --crash-loop-max (%s)", o.pods.CrashLoopInitial, longest))
	}
	return errors.Join(errs...)
}

// Run reads the manifests and runs their pods. ExitCode maps its error to an exit code.
func (o *Options) Run(ctx context.Context) error {
	objects, err := o.read(ctx)
	if err != nil {
		return err
	}
	ignored, err := o.handleUnsupported(objects.Unsupported())
	if err != nil {
		return err
	}
	s := newSession(o.expressions, o.Logs)
	options := o.pods
	options.Objects, options.Observe = objects, s.observe
	s.runner, err = o.newRunner(options)
	if err != nil {
		return err
	}
	if problems := s.runner.Warnings(); o.Strict && len(problems) > 0 {
		return fmt.Errorf("invalid markers, SidecarSets or programs, and --strict is set:%s", listed(problems))
	}
	for _, warning := range append(ignored, firstOf(s.runner.Warnings())...) {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
		for line := range strings.Lines(warning) {
			s.note("Warning", line)
		}
	}
	var pods []*corev1.Pod
	for _, view := range s.runner.Snapshot() {
		pods = append(pods, view.Pod)
	}
	s.watch = until.NewWatch(o.expressions, pods)
	stop, err := o.servePage(ctx, s, objects.Markers)
	if err != nil {
		return exit.Failure(err)
	}
	end, err := s.run(ctx, o.Timeout, o.interrupts, o.display(ctx, s))
	if err := errors.Join(err, stop()); err != nil {
		return exit.Failure(err)
	}
	return o.conclude(s, end)
}

// conclude reports whether the expressions were met. Without expressions, every run succeeds.
func (o *Options) conclude(s *session, end runEnd) error {
	if len(o.expressions) == 0 {
		return nil
	}
	if end.reason == allMet {
		fmt.Fprintf(o.ErrOut, "%s after %s\n", end.reason, round(end.after))
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %s:", end.reason, round(end.after))
	for _, result := range s.results() {
		if !result.Met {
			fmt.Fprintf(&text, "\n  %s: %s", result.Expression, result.Last)
		}
	}
	// They were shown at the start, before all changes, and may be the cause.
	for _, warning := range firstOf(s.runner.Warnings()) {
		fmt.Fprintf(&text, "\nWarning: %s", warning)
	}
	return exit.Failure(errors.New(text.String()))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// handleUnsupported returns the warning that lists all unsupported fields and kinds, if there
// are any. With --strict, it returns them as an error, except for those that cannot affect
// probes.
func (o *Options) handleUnsupported(unsupported []manifest.Unsupported) ([]string, error) {
	var ignored, rejected []string
	for _, u := range unsupported {
		if o.Strict && !u.Harmless() {
			rejected = append(rejected, u.String())
			continue
		}
		ignored = append(ignored, u.String())
	}
	if len(rejected) > 0 {
		return nil, fmt.Errorf("a local run does not support these, and --strict is set:%s", listed(rejected))
	}
	if len(ignored) == 0 {
		return nil, nil
	}
	return []string{"a local run ignores:" + listed(ignored)}, nil
}

// maxListed is the number of warnings, or of lines of one, that are printed.
const maxListed = 100

// listed returns a text with a line for each of the first lines, and one that counts the others.
func listed(lines []string) string { return "\n  " + strings.Join(firstOf(lines), "\n  ") }

// firstOf returns the first lines, and one that counts the others.
func firstOf(lines []string) []string {
	if more := len(lines) - maxListed; more > 0 {
		return append(slices.Clone(lines[:maxListed]), fmt.Sprintf("%d more", more))
	}
	return lines
}
