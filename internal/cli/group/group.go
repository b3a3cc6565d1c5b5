// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package group is for commands that only have subcommands: the root command and groups below it.
package group

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// RejectUnknown returns an error for an unknown command, which names the similar commands. It is the cobra.PositionalArgs
// of a group.
func RejectUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	similar := ""
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		similar = "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s\nRun '%s --help' for usage", args[0], cmd.CommandPath(), similar, cmd.CommandPath())
}
