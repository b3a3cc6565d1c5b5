// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui implements `seamark ui`, which serves the web page on a loopback address.
package ui

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	webui "github.com/seamark-dev/seamark/internal/ui"
	"github.com/seamark-dev/seamark/internal/ui/loopback"
	"github.com/seamark-dev/seamark/internal/ui/model"
)

const long = `Show markers, pods and their probes on a web page, which is updated live.

The command serves the page on a loopback address and prints its URL. The URL contains a random
key, so other users of the computer cannot open the page. The page only reads.

The page shows what you may read in the cluster: pods and podprobemarkers are required, in one
namespace or in all. Without permission for nodes, nodepodprobes and probereports, states come
from the conditions and labels of the pods, and a hint on standard error names the missing
permission. Without permission for events, timelines show only the last change.

The command runs until it is interrupted.

Exit codes: 0 after an interrupt, 1 if the server fails, 2 for bad input, 3 if the cluster cannot
be reached or pods or markers cannot be read.`

const example = `  # Show the namespace of the current context
  %[1]s ui

  # Show all namespaces on a fixed port
  %[1]s ui -A --address 127.0.0.1:8080`

// Options are the options of `seamark ui`.
type Options struct {
	genericiooptions.IOStreams
	// Cluster are the flags of kubectl.
	Cluster *cluster.Flags
	// Address is where the page is served.
	Address string
	// Version is the version of the program.
	Version string
	// Now is the clock.
	Now func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	o := &Options{IOStreams: streams, Cluster: cluster.NewFlags(streams, version), Address: "127.0.0.1:0", Version: version, Now: time.Now}
	command := &cobra.Command{
		Use:     "ui",
		Short:   "Show markers, pods and their probes on a web page",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// What the caches log is shown on the page, or as an error of the command.
			ctrllog.SetLogger(logr.Discard())
			return o.Run(ctx)
		},
	}
	command.Flags().StringVar(&o.Address, "address", o.Address, "loopback address and port of the page; port 0 is a free port")
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	return command
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	if err := loopback.Validate(o.Address); err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	return o.Cluster.Validate()
}

// Run serves the page until ctx ends.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.Cluster.Connect()
	if err != nil {
		return err
	}
	source, hint, err := newDirect(ctx, connection, o.Now)
	if err != nil {
		return err
	}
	if hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	handler, err := webui.New(webui.Options{
		Source: source, Guard: source,
		Session: model.Session{Source: model.SourceCluster, Version: o.Version, Namespace: connection.Namespace},
	})
	if err != nil {
		return exit.Failure(err)
	}
	defer handler.Close()
	server, err := loopback.Listen(ctx, o.Address)
	if err != nil {
		return exit.Failure(err)
	}
	o.announce(server, connection.Namespace)
	return exit.Failure(server.Serve(ctx, handler, handler.Close))
}

// announce prints the URL. It is the only line on standard output, for scripts.
func (o *Options) announce(server *loopback.Server, namespace string) {
	parameters := url.Values{}
	shown := "all namespaces"
	if namespace != "" {
		parameters.Set("namespace", namespace)
		shown = "namespace " + namespace
	}
	fmt.Fprintf(o.ErrOut, "The page shows %s. Stop with Ctrl-C. Open this URL in a browser:\n", shown)
	fmt.Fprintln(o.Out, server.URL(parameters))
}
