// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package group is for commands that only have subcommands: the root command and groups below it. It suggests names for
// those that do not exist.
package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// RejectUnknown returns an error for an unknown command, which names the similar commands. It is the cobra.PositionalArgs
// of a group.
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
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), DidYouMean("", word, names))
}

// minPrefix is the number of characters from which names that begin with a word are suggested for it.
const minPrefix = 2

// DidYouMean returns the end of an error about an unknown word: the names that begin with the word, or else the most
// similar one, each after the prefix. It is empty if there are none.
func DidYouMean(prefix, word string, names []string) string {
	var similar []string
	if len(word) >= minPrefix {
		similar = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, strings.ToLower(word)) })
	}
	if closest := text.Closest(word, names); len(similar) == 0 && closest != "" {
		similar = []string{closest}
	}
	if len(similar) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(similar, " or "+prefix) + "?"
}
