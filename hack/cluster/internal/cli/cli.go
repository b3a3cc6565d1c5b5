// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of the cluster program.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/hack/cluster/internal/build"
	"github.com/seamark-dev/seamark/hack/cluster/internal/cluster"
	"github.com/seamark-dev/seamark/hack/cluster/internal/layout"
	"github.com/seamark-dev/seamark/hack/cluster/internal/node"
	"github.com/seamark-dev/seamark/hack/cluster/internal/process"
	"github.com/seamark-dev/seamark/hack/cluster/internal/recipe"
	"github.com/seamark-dev/seamark/hack/image"
)

// launchCommand is a hidden command, with which this program starts daemons.
const launchCommand = "launch-daemon"

// New returns the root command, which prints to out.
func New(out io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "Build and run a real Kubernetes cluster on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	dir := root.PersistentFlags().String("dir", ".cluster", "folder of the cluster")
	on := func(run action) runE {
		return func(cmd *cobra.Command, args []string) error {
			target, err := open(*dir, out)
			if err != nil {
				return err
			}
			return run(cmd.Context(), target, args)
		}
	}
	root.AddCommand(newBuild(on), newKubernetes(on), newUp(on), newDown(on), newLoad(on), newImage(out), newRecipeImage(out), newLaunch())
	return root
}

// action is what a command does with the cluster of the folder. A runner opens the cluster for it.
type (
	action func(ctx context.Context, target *cluster.Cluster, args []string) error
	runE   func(cmd *cobra.Command, args []string) error
	runner func(action) runE
)

func open(path string, out io.Writer) (*cluster.Cluster, error) {
	dir, err := layout.New(path)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	source, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the folder of this program's module: %w", err)
	}
	return cluster.New(dir, source, []string{self, launchCommand}, out)
}

func newBuild(on runner) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the programs that are missing or out of date",
		Args:  cobra.NoArgs,
	}
	only := cmd.Flags().StringSlice("only", nil, "names of the programs to build (default all)")
	cmd.RunE = on(func(ctx context.Context, target *cluster.Cluster, _ []string) error {
		programs, err := build.Select(target.Programs(), *only)
		if err != nil {
			return err
		}
		return target.Builder().Ensure(ctx, programs)
	})
	return cmd
}

func newKubernetes(on runner) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubernetes MINOR",
		Short: "Set the version of Kubernetes for a folder, such as 1.32, before build or up",
		Args:  cobra.ExactArgs(1),
	}
	replacements := cmd.Flags().StringToString("replace", nil,
		"MODULE=VERSION or MODULE=FOLDER: what to use if a module of Kubernetes has no such version; repeatable")
	cmd.RunE = on(func(ctx context.Context, target *cluster.Cluster, args []string) error {
		return target.SetKubernetes(ctx, args[0], *replacements)
	})
	return cmd
}

func newUp(on runner) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start or repair the cluster, and build missing programs",
		Args:  cobra.NoArgs,
	}
	nodes := cmd.Flags().Int("nodes", 0, "number of nodes; by default those that exist, or one")
	names := cmd.Flags().StringSlice("runtime", nil, "container runtimes of the nodes, in their order, by default those that they have: "+
		"containerd and containerd-1.7 (built from source), debian (Debian's containerd 1.6)")
	cmd.RunE = on(func(ctx context.Context, target *cluster.Cluster, _ []string) error {
		runtimes, err := node.ParseRuntimes(*names)
		if err != nil {
			return err
		}
		return target.Up(ctx, cluster.Options{Nodes: *nodes, Runtimes: runtimes})
	})
	return cmd
}

func newDown(on runner) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster, except programs, image archives and logs",
		Args:  cobra.NoArgs,
		RunE: on(func(ctx context.Context, target *cluster.Cluster, _ []string) error {
			return target.Down(ctx)
		}),
	}
}

func newLoad(on runner) *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE...",
		Short: "Import image archives into every node",
		Args:  cobra.MinimumNArgs(1),
		RunE: on(func(ctx context.Context, target *cluster.Cluster, args []string) error {
			return target.Load(ctx, args)
		}),
	}
}

func newImage(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build an image archive from files, reproducibly",
		Args:  cobra.NoArgs,
	}
	var made image.Image
	flags := cmd.Flags()
	flags.StringVar(&made.Name, "name", "", "reference of the image, with a tag")
	flags.StringVar(&made.User, "user", "", "numeric user, and group after a colon (default root)")
	flags.StringArrayVar(&made.Entrypoint, "entrypoint", nil, "program to run; repeat for its arguments")
	path := flags.String("out", "", "archive to write")
	files := flags.StringArray("file", nil, "HOST=PATH: a file to add, and its path in the image; repeatable")
	for _, name := range []string{"name", "out", "file"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // The flags are defined above.
		}
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		for _, file := range *files {
			host, inside, ok := strings.Cut(file, "=")
			if !ok {
				return fmt.Errorf("file: %q is invalid: must be HOST=PATH", file)
			}
			if err := made.AddFile(host, inside); err != nil {
				return err
			}
		}
		digest, err := made.Write(*path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s %s\n", made.Name, digest)
		return err
	}
	return cmd
}

func newRecipeImage(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recipe-image FOLDER",
		Short: "Build an image archive from Debian packages, unless it exists: FOLDER/image.yaml describes it",
		Args:  cobra.ExactArgs(1),
	}
	path := cmd.Flags().String("out", "", "archive to write")
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic(err) // The flag is defined above.
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		description, err := recipe.Read(args[0])
		if err != nil {
			return err
		}
		return description.Build(cmd.Context(), *path, out)
	}
	return cmd
}

func newLaunch() *cobra.Command {
	return &cobra.Command{
		Use:    launchCommand + " SPEC",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			cgroups, err := cluster.Cgroups()
			if err != nil {
				return err
			}
			return process.Launch(args[0], cgroups)
		},
	}
}
