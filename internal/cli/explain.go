// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/explain"
)

func newExplainCommand(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	return explain.New(streams, displayName(program), version)
}
