// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release builds the artifacts of a release and publishes them.
//
// Two builds of one commit write the same bytes. `make release` and `make publish` run it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/hack/release/internal/build"
	"github.com/seamark-dev/seamark/hack/release/internal/oci"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand(os.Stdout).ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func newCommand(out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:          "release",
		Short:        "Build the artifacts of a release and publish them",
		SilenceUsage: true,
	}
	root.AddCommand(newBuild(out), newPush(out))
	return root
}

func newBuild(out io.Writer) *cobra.Command {
	o := build.Options{Progress: out}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build all artifacts of the commit that is checked out",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return build.Run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Version, "version", "", "version of the release, such as v0.2.0 or v0.2.0-rc.1")
	flags.StringVar(&o.Source, "source", "", "root of the repository")
	flags.StringVar(&o.Out, "out", "", "folder to write; it is replaced")
	flags.StringVar(&o.Registry, "registry", "", "registry and path of the images and the chart, such as docker.io/seamark")
	flags.StringVar(&o.URL, "url", "", "URL of the folder that the files are downloaded from")
	flags.StringVar(&o.Helm, "helm", "", "path of helm")
	require(cmd, "version", "source", "out", "registry", "url", "helm")
	return cmd
}

func newPush(out io.Writer) *cobra.Command {
	var layouts, registry string
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Push the images and the chart of a release to a registry",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pushed, err := oci.Push(cmd.Context(), layouts, registry)
			for _, reference := range pushed {
				_, _ = fmt.Fprintln(out, "pushed", reference)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&layouts, "layouts", "", "folder with the OCI layouts, which is oci in the output of build")
	flags.StringVar(&registry, "registry", "", "registry and path, such as docker.io/seamark")
	require(cmd, "layouts", "registry")
	return cmd
}

func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // The flags are defined above.
		}
	}
}
