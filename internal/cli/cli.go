// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the root command of the program seamark, with which the commands are registered. Each is a package below,
// with an options struct that its flags set and the steps Complete, Validate and Run. Commands read and write only the
// streams that they are given.
package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/check"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/explain"
	"github.com/seamark-dev/seamark/internal/cli/get"
	"github.com/seamark-dev/seamark/internal/cli/group"
	"github.com/seamark-dev/seamark/internal/cli/initialize"
	"github.com/seamark-dev/seamark/internal/cli/lint"
	"github.com/seamark-dev/seamark/internal/cli/local"
	"github.com/seamark-dev/seamark/internal/cli/migrate"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/rollout"
	"github.com/seamark-dev/seamark/internal/cli/set"
	"github.com/seamark-dev/seamark/internal/cli/test"
	"github.com/seamark-dev/seamark/internal/cli/timeline"
	"github.com/seamark-dev/seamark/internal/cli/top"
	"github.com/seamark-dev/seamark/internal/cli/tree"
	"github.com/seamark-dev/seamark/internal/cli/ui"
	"github.com/seamark-dev/seamark/internal/cli/usage"
	versions "github.com/seamark-dev/seamark/internal/cli/version"
	"github.com/seamark-dev/seamark/internal/cli/wait"
)

// pluginName is the name under which kubectl runs the program as a plugin.
const pluginName = "kubectl-seamark"

// New returns the root command. Results go to streams.Out, errors and warnings to
// streams.ErrOut. Help and errors name the program as it was called: program is os.Args[0].
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	streams.Out, streams.ErrOut = printing.Safe(streams.Out), printing.Safe(streams.ErrOut)
	printVersion := false
	root := &cobra.Command{
		Use:          "seamark",
		Short:        "Run custom probes in pods and mark the pods with the results",
		Long:         rootLong,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: displayName(program)},
		SilenceUsage: true,
		// Without this, an unknown command would print the help and succeed.
		Args: group.RejectUnknown,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !printVersion {
				return cmd.Help()
			}
			_, err := fmt.Fprintln(streams.Out, versions.Of(version))
			return exit.Failure(err)
		},
	}
	root.Flags().BoolVar(&printVersion, "version", false, "print the version of this program")
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	for _, add := range []func(streams genericiooptions.IOStreams, program, version string) *cobra.Command{
		initialize.New, lint.New, versions.New, local.New, check.New, migrate.New, timeline.New,
		explain.New, get.New, rollout.New, set.New, ui.New, test.New, wait.New, tree.New, top.New, usage.NewOptions,
	} {
		root.AddCommand(add(streams, displayName(program), version))
	}
	usage.Install(root)
	return root
}

const rootLong = `Run custom probes in pods and mark the pods with the results.

Exit codes of all commands: 0 for success; 1 if the command failed, does not exist, or found
something to report; 2 for bad input; 3 if the cluster cannot be reached, or a permission is missing
without which the command has no answer. Those of 'rollout', 'set image' and 'wait' are kubectl's: 0
for success, and otherwise 1.`

// displayName returns how users call the program: as a plugin of kubectl, or by its own name. The program
// may be a display name.
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if strings.ReplaceAll(name, " ", "-") == pluginName {
		return "kubectl seamark"
	}
	return "seamark"
}
