// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package group is for commands that only have subcommands: the root command and groups below it. It suggests names for
// those that do not exist.
package group

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// RejectUnknown returns an error for an unknown command, which names the similar commands. It is the cobra.PositionalArgs
// of a group. The exit code is that of kubectl.
func RejectUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	var names []string
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, args[0]) {
			word = c.Name()
		}
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return exit.Failure(fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), text.Suggestion(text.Similar(word, names)...)))
}
