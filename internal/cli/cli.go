// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements the commands of the program seamark. Each command has an options
// struct with the steps Complete, Validate and Run. Commands read and write only the streams
// that they are given.
package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Exit codes of all commands.
const (
	// ExitOK means success.
	ExitOK = 0
	// ExitFailed means that the run failed, or ended before its --until expressions were met.
	ExitFailed = 1
	// ExitUsage means bad input: flags, expressions or manifests.
	ExitUsage = 2
)

// runError is an error during a run. All other errors are usage errors.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	var failed *runError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &failed):
		return ExitFailed
	default:
		return ExitUsage
	}
}

// New returns the root command. Results go to streams.Out, errors and warnings to
// streams.ErrOut.
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	root := &cobra.Command{
		Use:          "seamark",
		Short:        "Run custom probes in pods and mark the pods with the results",
		SilenceUsage: true,
		// Without this, an unknown command would print the help and succeed.
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
				return &runError{fmt.Errorf("print version: %w", err)}
			}
			return nil
		},
	}
}
