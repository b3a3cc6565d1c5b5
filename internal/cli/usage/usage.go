// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage makes help and errors about arguments and flags those of kubectl: help lists the flags of a command, and
// those that select the cluster and the user are listed by `seamark options`. Errors suggest similar names, and say where
// the help is.
package usage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/group"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Install changes help and errors of the root command and of all commands below it. It is called once, after all commands
// were added.
func Install(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		// Both would print help for an unknown argument, and succeed.
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return err //nolint:wrapcheck // it names the argument
				}
				return hinting(group.RejectUnknown)(found, rest)
			}
		case "completion":
			c.Args = hinting(group.RejectUnknown)
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		default:
			hintArguments(c)
		}
	}
	root.Args = hinting(root.Args)
	root.SetFlagErrorFunc(flagError)
	printUsage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error { return withoutConnection(cmd, printUsage) })
}

// withHint returns the error with the command that prints the usage.
func withHint(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath()) //nolint:revive,staticcheck // a sentence of its own
}

// hinting returns the check of arguments with the hint in its errors.
func hinting(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return withHint(cmd, err)
		}
		return nil
	}
}

// hintArguments adds the hint to errors about the arguments of the command and of those below it.
func hintArguments(cmd *cobra.Command) {
	if cmd.Args != nil {
		cmd.Args = hinting(cmd.Args)
	}
	for _, c := range cmd.Commands() {
		hintArguments(c)
	}
}

// flagError adds similar flags and the hint to an error about flags. The flags of an unknown subcommand are not known either, so
// the error is about the subcommand.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			return err //nolint:wrapcheck // it names the argument
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				names = append(names, flag.Name)
			}
		})
		// -kubeconfig is a word whose first letter is no flag. One letter is similar to anything.
		word := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName())
		if len(word) > 1 {
			similar := text.Similar(word, names)
			for i := range similar {
				similar[i] = "--" + similar[i]
			}
			err = fmt.Errorf("%w%s", err, text.Suggestion(similar...))
		}
	}
	return withHint(cmd, err)
}

// withoutConnection prints the usage of a command without the flags of a connection, and says where they are.
func withoutConnection(cmd *cobra.Command, printUsage func(*cobra.Command) error) error {
	hide := func(hidden bool) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if cluster.IsConnectionFlag(flag) {
				flag.Hidden = hidden
			}
		})
	}
	// Hidden flags would not be completed.
	hide(true)
	err := printUsage(cmd)
	hide(false)
	if usesCluster(cmd) {
		fmt.Fprintf(cmd.OutOrStderr(), "\nUse %q for a list of global command-line options (applies to all commands that use a cluster).\n",
			cmd.Root().CommandPath()+" options")
	}
	return err
}

// usesCluster reports whether the command, or one below it, has the flags of a connection.
func usesCluster(cmd *cobra.Command) bool {
	found := slices.ContainsFunc(cmd.Commands(), usesCluster)
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { found = found || cluster.IsConnectionFlag(flag) })
	return found
}

// NewOptions returns the command `seamark options`.
func NewOptions(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the options of all commands that use a cluster",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			cluster.NewFlags(streams, version).AddFlags(flags)
			if _, err := fmt.Fprintf(streams.Out, "These options can be passed to all commands that use a cluster:\n\n%s", flags.FlagUsages()); err != nil {
				return exit.Failure(fmt.Errorf("print the options: %w", err))
			}
			return nil
		},
	}
}
