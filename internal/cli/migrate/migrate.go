// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate implements `seamark migrate`, which prepares a migration from OpenKruise: `seamark migrate check` shows
// what would change, and `seamark migrate revisions` copies revisions. Package survey reads a cluster, and package
// migration decides.
package migrate

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/group"
)

// New returns the command.
func New(streams genericiooptions.IOStreams, _, version string) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Prepare a migration from OpenKruise",
		Args:  group.RejectUnknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newCheck(streams, version), newRevisions(streams, version))
	return command
}
