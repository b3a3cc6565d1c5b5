// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark is the user's command line.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := newCommand(os.Stdout).Execute(); err != nil {
		os.Exit(1)
	}
}

// newCommand returns the root command, which writes its results to out and its errors
// to the standard error.
func newCommand(out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:          "seamark",
		Short:        "Custom probes in pods, and marks on the pods from what the probes say",
		SilenceUsage: true,
	}
	root.SetOut(out)
	root.AddCommand(newVersionCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "seamark %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
