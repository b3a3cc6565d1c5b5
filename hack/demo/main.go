// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo demonstrates Seamark on a cluster where it is installed. It starts the game
// servers of examples/game-server, prints their marks as they change, scales their Deployment
// down, and checks that only idle servers are removed. With -roles, it starts the database of
// examples/primary-secondary, updates its image, and prints how often its primary switches, next to
// the same update by the built-in StatefulSet. With -session, it types commands as a user would, for
// a recording.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// run parses the flags, connects to the cluster, and runs the demo.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig of a cluster with Seamark installed")
	manifests := flags.String("manifests", "examples/game-server", "folder with one Deployment and its PodProbeMarker")
	kubectl := flags.String("kubectl", "kubectl", "kubectl command to print in the suggestions at the end")
	showRoles := flags.Bool("roles", false, "update a database, with -manifests examples/primary-secondary")
	showSession := flags.Bool("session", false, "type the commands of a user for a recording; kubectl and kubectl-seamark must be in the PATH")
	watch := flags.Duration("watch", 30*time.Second, "how long to show the marks before scaling down")
	if err := flags.Parse(args); err != nil {
		return err
	}
	settings := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: *kubeconfig}, &clientcmd.ConfigOverrides{})
	config, err := settings.ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", *kubeconfig, err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	objects, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if *showRoles {
		objectsOfBoth, err := readRoles(*manifests)
		if err != nil {
			return err
		}
		r := &roles{
			out: os.Stdout, clientset: clientset, objects: objects, manifests: objectsOfBoth, kubectl: *kubectl, kubeconfig: *kubeconfig,
		}
		return r.play(ctx)
	}
	example, err := readExample(*manifests)
	if err != nil {
		return err
	}
	s := &story{
		out: os.Stdout, clientset: clientset, objects: objects, example: example,
		watch: *watch, kubectl: *kubectl, kubeconfig: *kubeconfig,
	}
	if *showSession {
		if example.namespace, _, err = settings.Namespace(); err != nil {
			return fmt.Errorf("read kubeconfig %q: %w", *kubeconfig, err)
		}
		return (&session{story: s, manifests: *manifests}).play(ctx)
	}
	return s.play(ctx)
}
