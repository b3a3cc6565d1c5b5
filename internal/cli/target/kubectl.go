// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seamark-dev/seamark/internal/cli/exit"
)

// PassOn runs the command of kubectl with the same name, arguments and flags. kubectl prints its own errors.
func (f *Flags) PassOn(cmd *cobra.Command, args []string) error {
	all := slices.Clone(f.Command)
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			for _, value := range values.GetSlice() {
				all = append(all, "--"+flag.Name+"="+value)
			}
			return
		}
		all = append(all, "--"+flag.Name+"="+flag.Value.String())
	})
	return f.Kubectl(cmd.Context(), append(append(all, "--"), args...))
}

func (f *Flags) runKubectl(ctx context.Context, args []string) error {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return exit.Failure(fmt.Errorf("objects of other groups than apps.kruise.io need kubectl: %w", err))
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Stdin, command.Stdout, command.Stderr = f.In, f.Out, f.ErrOut
	if err := command.Run(); err != nil {
		return exit.Failure(fmt.Errorf("kubectl %s: %w", strings.Join(f.Command, " "), err))
	}
	return nil
}
