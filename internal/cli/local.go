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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/manifest"
)

// LocalOptions are those of `seamark local`. The fields without a flag of the same name
// are filled in by Complete.
type LocalOptions struct {
	genericiooptions.IOStreams
	// Version is the program's.
	Version string

	// Filenames are files and folders, and "-" for the standard input.
	Filenames []string
	// Replicas overrides those of the manifests, where it is not negative.
	Replicas int32
	// Output is text, json, or empty: a table on a terminal, else text.
	Output string
	// Until are expressions that end the run once all of them hold.
	Until []string
	// Timeout is how long the run lasts at most. Zero is for ever.
	Timeout time.Duration
	// Strict refuses what a local run can't honour, instead of warning of it.
	Strict bool
	// SharedAddress gives all pods 127.0.0.1.
	SharedAddress bool
	// CrashLoopInitial and CrashLoopMax are the first and longest delay of a restart.
	// Zero keeps the kubelet's.
	CrashLoopInitial, CrashLoopMax time.Duration
	// Logs shows what the containers write.
	Logs bool

	expressions []until.Expression
	terminal    bool
	newRunner   func(local.Options) (runner, error)
	// interrupts has one entry for each Ctrl-C.
	interrupts chan os.Signal
}

// runner is a run of pods, which local.Runner implements.
type runner interface {
	Run(ctx context.Context) error
	Kill()
	Snapshot() []local.PodView
	Warnings() []string
}

const localLong = `Run pods as processes of this machine, with no cluster, no container runtime and no
root, and show what a cluster would show: the kubelet's three probes, the probes of
PodProbeMarkers, restarts, conditions, events, and the marks on the pods.

Pods, Deployments, StatefulSets, PodProbeMarkers, ConfigMaps and Secrets are read from the
files. Images are not pulled: a container needs a command that this machine has.

On a terminal a table is shown; / filters it, p pauses it, q quits. Elsewhere each change is
a line. The run lasts until Ctrl-C, --timeout, or until all that --until asks for holds. A
second Ctrl-C ends all processes at once.

Each --until is a pod, or a glob for several that must all comply, and what it must have:

  pod/NAME condition=TYPE:STATUS      True, False or Unknown
  pod/NAME label=KEY:VALUE            also KEY for any value, !KEY for none
  pod/NAME annotation=KEY:VALUE       likewise
  pod/NAME event=REASON[:TEXT]        came at least once, with TEXT in its message
  pod/NAME restarts=N                 at least N, over all its containers

Exit codes: 0 when all held, or nothing was asked for; 1 when the run ended before all held;
2 for bad input.`

const localExample = `  # Watch the marks of game servers
  seamark local -f examples/game-server

  # Prove in CI that a probe finds the primary within half a minute
  seamark local -f database.yaml -o json --timeout 30s \
    --until 'pod/database-0 label=role:primary' --until 'pod/database-* condition=Ready:True'`

func newLocalCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &LocalOptions{IOStreams: streams, Version: version, Replicas: -1}
	command := &cobra.Command{
		Use:     "local -f FILE...",
		Short:   "Run pods as local processes and show what their probes say",
		Long:    localLong,
		Example: localExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
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
	flags.StringArrayVarP(&o.Filenames, "filename", "f", nil, "file or folder with manifests, or - for the standard input; repeatable")
	flags.Int32Var(&o.Replicas, "replicas", o.Replicas, "number of pods of each Deployment and StatefulSet (default that of the manifest)")
	flags.StringVarP(&o.Output, "output", "o", "", "text or json (default a table on a terminal, else text)")
	flags.StringArrayVar(&o.Until, "until", nil, "end once this holds, such as 'pod/NAME condition=TYPE:STATUS'; repeatable")
	flags.DurationVar(&o.Timeout, "timeout", 0, "end after this time, with exit code 1 if an --until does not hold (default never)")
	flags.BoolVar(&o.Strict, "strict", false, "refuse manifests with fields that a local run can't honour")
	flags.BoolVar(&o.SharedAddress, "shared-address", false, "give all pods 127.0.0.1, on systems that have no other loopback address")
	flags.DurationVar(&o.CrashLoopInitial, "crash-loop-initial", 0, "first delay before a crashed container is restarted (default 10s)")
	flags.DurationVar(&o.CrashLoopMax, "crash-loop-max", 0, "longest delay before a crashed container is restarted (default 5m)")
	flags.BoolVar(&o.Logs, "logs", false, "show what the containers write")
	// A default that stands for "unset" is explained in the text, not shown as a value.
	flags.Lookup("replicas").DefValue = "0"
	return command
}

// Complete fills in what the command line leaves open. The error is of an expression.
func (o *LocalOptions) Complete() error {
	for _, text := range o.Until {
		expression, err := until.Parse(text)
		if err != nil {
			return fmt.Errorf("--until: %w", err)
		}
		o.expressions = append(o.expressions, expression)
	}
	if out, ok := o.Out.(*os.File); ok && o.Output == "" {
		// A dumb terminal can't move its cursor.
		o.terminal = term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	}
	o.interrupts = make(chan os.Signal, 2)
	o.newRunner = func(options local.Options) (runner, error) { return local.New(options) }
	return nil
}

// Validate checks the flags. The error says which is wrong, and what is allowed.
func (o *LocalOptions) Validate(replicasGiven bool) error {
	var errs []error
	if len(o.Filenames) == 0 {
		errs = append(errs, errors.New("--filename: at least one file or folder is needed, or - for the standard input"))
	}
	switch o.Output {
	case "", "text", "json":
	default:
		errs = append(errs, fmt.Errorf("--output: %q: must be text or json", o.Output))
	}
	if replicasGiven && (o.Replicas < 0 || o.Replicas > manifest.MaxReplicas) {
		errs = append(errs, fmt.Errorf("--replicas: %d: must be from 0 to %d", o.Replicas, manifest.MaxReplicas))
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
			errs = append(errs, fmt.Errorf("%s: %s: must not be negative", flag.name, flag.value))
		}
	}
	if longest := cmp.Or(o.CrashLoopMax, lifecycle.DefaultCrashLoopMax); longest > 0 && o.CrashLoopInitial > longest {
		errs = append(errs, fmt.Errorf("--crash-loop-initial: %s: must not be above --crash-loop-max, %s", o.CrashLoopInitial, longest))
	}
	return errors.Join(errs...)
}

// Run reads the manifests and runs their pods. See ExitCode for its errors.
func (o *LocalOptions) Run(ctx context.Context) error {
	objects, err := o.read(ctx)
	if err != nil {
		return err
	}
	if err := o.unsupported(objects.Unsupported()); err != nil {
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
	for _, warning := range s.runner.Warnings() {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	s.watch = until.NewWatch(o.expressions, s.runner.Snapshot())
	end, err := s.run(ctx, o.Timeout, o.interrupts, o.display(s))
	if err != nil {
		return &failure{err}
	}
	return o.conclude(s, end)
}

// conclude says how the run ended, if it was to come to something.
func (o *LocalOptions) conclude(s *session, end end) error {
	if len(o.expressions) == 0 {
		return nil
	}
	if end.reason == held {
		fmt.Fprintf(o.ErrOut, "all held after %s\n", round(end.after))
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s after %s:", end.reason, round(end.after))
	for _, verdict := range s.verdicts() {
		if !verdict.Held {
			fmt.Fprintf(&text, "\n  %s: %s", verdict.Expression, verdict.Last)
		}
	}
	return &failure{errors.New(text.String())}
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// unsupported warns of what a local run ignores, once for all of it, or refuses it.
func (o *LocalOptions) unsupported(fields []manifest.Field) error {
	if len(fields) == 0 {
		return nil
	}
	var text strings.Builder
	for _, f := range fields {
		if o.Strict {
			fmt.Fprintf(&text, "\n  %s", f.Where())
			continue
		}
		fmt.Fprintf(&text, "\n  %s", f)
	}
	if o.Strict {
		return fmt.Errorf("a local run can't honour these, and --strict is given:%s", text.String())
	}
	fmt.Fprintf(o.ErrOut, "Warning: a local run ignores:%s\n", text.String())
	return nil
}
