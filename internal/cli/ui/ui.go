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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/loopback"
	"github.com/seamark-dev/seamark/internal/web/model"
)

const long = `Show markers, sets, pods and their probes on a web page, which is updated live.

The command serves the page on a loopback address and prints its URL. The URL contains a random
key, so other users of the computer cannot open the page. The key opens the page once; all tabs of
this browser then show it. The command prints another URL for another browser. The page only reads.

The command watches the API server with your own credentials, which the browser does not receive.

The page shows what you may read in the cluster: pods and podprobemarkers are required, in one
namespace or in all. With --all-namespaces, it shows the namespaces that you may read, and with
--namespace a,b these. Without permission for nodes, nodepodprobes, probeplans and probereports, states come
from the conditions and labels of the pods, and a hint on standard error names the missing
permission. Without permission for events, timelines show only the last change. Sets of apps.kruise.io
are shown if you may read them.

The command runs until it is interrupted.

Exit codes: 0 after an interrupt, 1 if the server fails, 2 for bad input, 3 if the cluster cannot
be reached or pods or markers cannot be read.`

const example = `  # Show the namespace of the current context
  %[1]s ui

  # Open the page in your browser
  %[1]s ui --open

  # Show all namespaces on a fixed port
  %[1]s ui -A --address 127.0.0.1:8080`

// Options are the options of `seamark ui`.
type Options struct {
	genericiooptions.IOStreams
	// Cluster are the flags of kubectl.
	Cluster *cluster.Flags
	// Address is where the page is served.
	Address string
	// Open is whether to open the page in the browser of the user.
	Open bool
	// Version is the version of the program.
	Version string
	// Now is the clock.
	Now func() time.Time
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	o := &Options{IOStreams: streams, Cluster: cluster.NewFlags(streams, version), Version: version, Now: time.Now}
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
			return o.Run(ctx)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Address, "address", "127.0.0.1:0", "loopback address and port of the page; port 0 is a free port")
	flags.BoolVar(&o.Open, "open", false, "open the page in your browser: that of the variable BROWSER, or the default one")
	o.Cluster.AddAllNamespaces(command)
	o.Cluster.AddTo(command)
	return command
}

// Validate returns an error for bad input.
func (o *Options) Validate() error {
	if err := loopback.Validate(o.Address); err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	return nil
}

// Run serves the page until ctx ends.
func (o *Options) Run(ctx context.Context) error {
	connection, err := o.Cluster.Connect()
	if err != nil {
		return err
	}
	var chosen []string
	if strings.Contains(connection.Namespace, ",") {
		if chosen, err = namespacesOf(connection.Namespace); err != nil {
			return err
		}
		connection.Namespace = ""
	}
	handler, err := o.handler(ctx, connection, chosen)
	if err != nil {
		return err
	}
	defer handler.Close()
	server, err := loopback.Listen(ctx, o.Address)
	if err != nil {
		return exit.Failure(err)
	}
	o.announce(ctx, server, connection.Namespace, chosen)
	return exit.Failure(server.Serve(ctx, handler, handler.Close))
}

// handler returns what serves the page. It prints a hint if not everything can be read.
func (o *Options) handler(ctx context.Context, connection cluster.Connection, chosen []string) (*webui.Handler, error) {
	own, _, err := o.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, exit.NoAccess(fmt.Errorf("read namespace of kubeconfig: %w", err))
	}
	if len(chosen) > 0 {
		own = ""
	}
	source, hint, err := newDirect(ctx, connection, &visible{reader: connection.Client, chosen: chosen, own: own, now: o.Now})
	if err != nil {
		return nil, err
	}
	if hint != "" {
		fmt.Fprintln(o.ErrOut, "Hint: "+hint)
	}
	return webui.New(webui.Options{
		Source: source, Access: source.access,
		Session: model.Session{Source: model.SourceCluster, Version: o.Version, Namespace: connection.Namespace},
	}), nil
}

// announce prints the URL, and another one each time the page was opened. The first is the only line
// on standard output, for scripts. It also opens the page, if the user wants this.
func (o *Options) announce(ctx context.Context, server *loopback.Server, namespace string, chosen []string) {
	parameters := url.Values{}
	shown := "all namespaces that you may read"
	switch {
	case namespace != "":
		parameters.Set("namespace", namespace)
		shown = "namespace " + namespace
	case len(chosen) > 0:
		shown = "the namespaces " + strings.Join(chosen, ", ")
	}
	fmt.Fprintf(o.ErrOut, "The page shows %s. Stop with Ctrl-C. Open this URL in a browser:\n", shown)
	address := server.URL(parameters)
	fmt.Fprintln(o.Out, address)
	server.Opened = func() {
		fmt.Fprintf(o.ErrOut, "The page was opened. For another browser, it has the URL %s\n", server.URL(parameters))
	}
	if !o.Open {
		return
	}
	failed := func(err error) { fmt.Fprintf(o.ErrOut, "--open: %v. Open the URL yourself.\n", err) }
	if err := newOpener().open(ctx, address, failed); err != nil {
		failed(err)
	}
}
