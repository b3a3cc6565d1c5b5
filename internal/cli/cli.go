// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the commands of the program seamark. Each command has its options in a
// struct, which is completed from the command line, validated, and run; all that a command
// reads and writes is handed to it.
package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The exit codes of all commands.
const (
	// ExitOK is for what was asked for, or nothing to complain of.
	ExitOK = 0
	// ExitFailed is for a run that did not come to what was asked for.
	ExitFailed = 1
	// ExitUsage is for bad input: flags, expressions or manifests.
	ExitUsage = 2
)

// failure is an error of a run; every other error is of its input.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit code for what a command returned.
func ExitCode(err error) int {
	var failed *failure
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &failed):
		return ExitFailed
	default:
		return ExitUsage
	}
}

// New returns the root command. Results go to the streams' Out, errors and warnings to
// their ErrOut. The version is the program's own.
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	root := &cobra.Command{
		Use:          "seamark",
		Short:        "Custom probes in pods, and marks on the pods from what the probes say",
		SilenceUsage: true,
		// Without this, arguments that are no command would print the help and succeed.
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(newVersionCommand(streams, version), newLocalCommand(streams, version))
	return root
}

func newVersionCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(streams.Out, "seamark %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return &failure{fmt.Errorf("print the version: %w", err)}
			}
			return nil
		},
	}
}
