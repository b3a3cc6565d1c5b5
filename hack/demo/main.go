// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo demonstrates Seamark on a cluster where it is installed, with the commands of a user.
// It starts the game servers of examples/game-server, shows their probes, scales their Deployment
// down, and checks that no match is interrupted. With -roles, it updates the database of
// examples/primary-secondary next to the same database in the built-in StatefulSet, and prints how
// often the primary of each switches.
//
// It runs in the root of the repository. kubectl and kubectl-seamark must be in the PATH.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// run parses the flags, connects to the cluster, and runs a demo in the namespace of the kubeconfig.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	showRoles := flags.Bool("roles", false, "update a database instead of scaling game servers down")
	typing := flags.Bool("typing", false, "type the commands at the speed of a user, for a recording")
	if err := flags.Parse(args); err != nil {
		return err
	}
	settings := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := settings.ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := settings.Namespace()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	shell := &shell{out: os.Stdout, typing: *typing, run: system}
	if *showRoles {
		r := &roles{shell: shell, pods: clientset.CoreV1().Pods(namespace), leases: clientset.CoordinationV1().Leases(namespace)}
		return r.play(ctx)
	}
	return (&servers{shell: shell, pods: clientset.CoreV1().Pods(namespace)}).play(ctx)
}
