// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// LocalOptions are the options of `seamark local`. Complete sets the unexported fields.
type LocalOptions struct {
	genericiooptions.IOStreams
	// Version is the version of the program.
	Version string

	// Filenames are files, folders, URLs, or "-" for the standard input.
	Filenames []string
	// Kustomize is a folder with a kustomization, or empty.
	Kustomize string
	// AllowRemote permits manifests from URLs, and kustomizations with remote parts.
	AllowRemote bool
	// Commands are commands of containers, as CONTAINER=COMMAND.
	Commands []string
	// Replicas overrides the replicas of the workloads, except for DaemonSets, Jobs and
	// CronJobs, unless it is negative.
	Replicas int32
	// Output is text or json. If it is empty, it is a table on a terminal, otherwise text.
	Output string
	// Until are the expressions that end the run when all of them are met.
	Until []string
	// Timeout is the maximum duration of the run. Zero means no limit.
	Timeout time.Duration
	// Strict rejects problems of markers, and unsupported kinds and fields that can affect
	// probes, instead of printing a warning.
	Strict bool
	// SharedAddress gives all pods the address 127.0.0.1.
	SharedAddress bool
	// CrashLoopInitial and CrashLoopMax are the first and longest delay before a restart.
	// Zero means the default of the kubelet.
	CrashLoopInitial, CrashLoopMax time.Duration
	// UI is the address of the web page, or empty for none.
	UI string
	// Logs shows the output of the containers.
	Logs bool
	// Verbose shows standard conditions, and how the pods are stopped.
	Verbose bool

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

const localLong = `Run pods as processes on this machine, without a cluster, a container runtime or root
privileges, and show what a cluster would show: the startup, liveness and readiness probes,
the probes of PodProbeMarkers, restarts, conditions, events, and the marks on the pods.

The command reads Pods, Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs,
PodProbeMarkers, ConfigMaps, Secrets, PersistentVolumeClaims, and the CloneSets, StatefulSets
and DaemonSets of apps.kruise.io, from files, folders and URLs or a kustomization (-k). -f FILE is
the same as FILE.
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

const localExample = `  # Watch the marks of the game servers
  seamark local examples/game-server

  # Test in CI that a probe finds the primary within 30 seconds
  seamark local database.yaml -o json --timeout 30s \
    --until 'pod/database-0 label=role:primary' --until 'pod/database-* condition=Ready:True'`

func newLocalCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &LocalOptions{IOStreams: streams, Version: version, Replicas: -1}
	command := &cobra.Command{
		Use:     "local (FILE... | -k FOLDER)",
		Short:   "Run pods as local processes and show their probe results",
		Long:    localLong,
		Example: localExample,
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
	flags.BoolVar(&o.AllowRemote, "allow-remote", false, "run commands of manifests from URLs and of remote parts of a kustomization")
	flags.StringArrayVar(&o.Commands, "command", nil, "shell command to run in a container instead of its command and args, as CONTAINER='COMMAND' (repeatable)")
	flags.Int32Var(&o.Replicas, "replicas", o.Replicas, "number of pods of each workload, except DaemonSets, Jobs and CronJobs (default from the manifest)")
	flags.StringVarP(&o.Output, "output", "o", "", "output format: text or json (default a table on a terminal, otherwise text)")
	flags.StringArrayVar(&o.Until, "until", nil, "end the run when this is met, for example 'pod/NAME condition=TYPE:STATUS' (repeatable)")
	flags.DurationVar(&o.Timeout, "timeout", 0, "end the run after this time, with exit code 1 if an --until expression is not met (default never)")
	flags.BoolVar(&o.Strict, "strict", false, "reject problems of markers, and unsupported kinds and fields that can affect probes, instead of warning")
	flags.BoolVar(&o.SharedAddress, "shared-address", false, "give all pods the address 127.0.0.1, for systems without other loopback addresses")
	flags.DurationVar(&o.CrashLoopInitial, "crash-loop-initial", 0, "initial delay before a crashed container is restarted (default 10s)")
	flags.DurationVar(&o.CrashLoopMax, "crash-loop-max", 0, "maximum delay before a crashed container is restarted (default 5m)")
	flags.StringVar(&o.UI, "ui", "", "serve a web page of the run on this loopback address, and print its URL")
	flags.BoolVar(&o.Logs, "logs", false, "show the output of the containers")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "show standard conditions other than Ready, and how the pods are stopped")
	flags.Lookup("ui").NoOptDefVal = "127.0.0.1:0"
	// The usage text states the default. pflag does not print a default of 0.
	flags.Lookup("replicas").DefValue = "0"
	return command
}

// Complete adds the files of the arguments, parses the expressions and sets the defaults.
func (o *LocalOptions) Complete(args []string) error {
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
	// A dumb terminal cannot move its cursor.
	o.terminal = o.Output == "" && printing.IsTerminal(o.Out) && os.Getenv("TERM") != "dumb"
	o.interrupts = make(chan os.Signal, 2)
	o.system = runtime.GOOS
	o.newRunner = func(options local.Options) (runner, error) { return local.New(options) }
	return nil
}

// Validate checks the flags. The error names each invalid flag and the allowed values.
func (o *LocalOptions) Validate(replicasGiven bool) error {
	var errs []error
	if o.system == "windows" {
		// Without process groups, a run could not stop what the containers have started.
		return errors.New("seamark local does not run on Windows: run it in the Windows Subsystem for Linux")
	}
	if len(o.Filenames) == 0 && o.Kustomize == "" {
		errs = append(errs, errors.New("FILE or --kustomize is required: specify a file, a folder, a URL, or - for the standard input, or a folder with a kustomization"))
	}
	errs = append(errs, o.validateSources()...)
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
		{"--crash-loop-initial", o.CrashLoopInitial},
		{"--crash-loop-max", o.CrashLoopMax},
	} {
		if flag.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is invalid: must not be negative", flag.name, flag.value))
		}
	}
	if longest := cmp.Or(o.CrashLoopMax, lifecycle.DefaultCrashLoopMax); longest > 0 && o.CrashLoopInitial > longest {
		errs = append(errs, fmt.Errorf("--crash-loop-initial: %s is invalid: must not exceed --crash-loop-max (%s)", o.CrashLoopInitial, longest))
	}
	return errors.Join(errs...)
}

// validateSources returns an error for each manifest on another machine, unless they are allowed.
func (o *LocalOptions) validateSources() []error {
	var errs []error
	for _, name := range o.Filenames {
		if isURL(name) && !o.AllowRemote {
			errs = append(errs, fmt.Errorf("--filename: %q is on another machine: %s", name, remoteRefused))
		}
	}
	if isRemote(o.Kustomize) && !o.AllowRemote {
		errs = append(errs, fmt.Errorf("--kustomize: %q is on another machine: %s", o.Kustomize, remoteRefused))
	}
	return errs
}

// Run reads the manifests and runs their pods. ExitCode maps its error to an exit code.
func (o *LocalOptions) Run(ctx context.Context) error {
	objects, err := o.read(ctx)
	if err != nil {
		return err
	}
	ignored, err := o.handleUnsupported(objects.Unsupported())
	if err != nil {
		return err
	}
	s := newSession(o.expressions, o.Logs)
	s.runner, err = o.newRunner(local.Options{
		Objects: objects, SharedAddress: o.SharedAddress,
		CrashLoopInitial: o.CrashLoopInitial, CrashLoopMax: o.CrashLoopMax,
		Version: o.Version, Observe: s.observe,
	})
	if err != nil {
		return err
	}
	if problems := s.runner.Warnings(); o.Strict && len(problems) > 0 {
		return fmt.Errorf("invalid markers, and --strict is set:%s", listed(problems))
	}
	s.warnings = append(ignored, firstOf(s.runner.Warnings())...)
	for _, warning := range s.warnings {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	s.watch = until.NewWatch(o.expressions, s.runner.Snapshot())
	stop, err := o.servePage(ctx, s, objects.Markers)
	if err != nil {
		return exit.Failure(err)
	}
	end, err := s.run(ctx, o.Timeout, o.interrupts, o.newDisplay(s))
	if err := errors.Join(err, stop()); err != nil {
		return exit.Failure(err)
	}
	return o.conclude(s, end)
}

// conclude reports whether the expressions were met. Without expressions, every run succeeds.
func (o *LocalOptions) conclude(s *session, end runEnd) error {
	if len(o.expressions) == 0 {
		return nil
	}
	if end.reason == allMet {
		fmt.Fprintf(o.ErrOut, "%s after %s\n", end.reason, round(end.after))
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %s:", end.reason, round(end.after))
	for _, verdict := range s.verdicts() {
		if !verdict.Met {
			fmt.Fprintf(&text, "\n  %s: %s", verdict.Expression, verdict.Last)
		}
	}
	return exit.Failure(errors.New(text.String()))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// handleUnsupported returns the warning that lists all unsupported fields and kinds, if there
// are any. With --strict, it returns them as an error, except for those that cannot affect
// probes.
func (o *LocalOptions) handleUnsupported(unsupported []manifest.Unsupported) ([]string, error) {
	var ignored, rejected []string
	for _, u := range unsupported {
		if o.Strict && !u.Harmless() {
			rejected = append(rejected, u.Location())
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
