// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster connects the commands of the program seamark to a cluster. It has the flags of
// kubectl that select the cluster, the user and the namespace; a client; Read, which reads what
// the commands show in one call and records what the user may not read; completion of names; and
// suggestions for misspelled names.
//
// A command that needs a cluster has its own Flags:
//
//	flags := cluster.NewFlags(streams, version)
//	flags.AddTo(command)          // --kubeconfig, --context, --namespace, ...
//	flags.AddAllNamespaces(command)  // -A, if the command supports it
//	...
//	connection, err := flags.Connect()
//	snapshot, err := cluster.Read(ctx, connection.Client, cluster.Query{Namespace: connection.Namespace})
//	if err := snapshot.Require(permission.Pods, permission.Markers); err != nil {
//		return err
//	}
//	states := probestate.Of(snapshot.Input)
//
// Errors of this package have the right exit code: see package exit.
package cluster

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/exit"
)

// Flags are the flags of a command that select the cluster, the user and the namespace. They are
// those of kubectl.
type Flags struct {
	*genericclioptions.ConfigFlags
	// AllNamespaces is -A. It is false unless AddAllNamespaces was called.
	AllNamespaces bool
}

// NewFlags returns the flags of one command. Warnings of the API server go to streams.ErrOut.
func NewFlags(streams genericiooptions.IOStreams, version string) *Flags {
	f := &Flags{ConfigFlags: genericclioptions.NewConfigFlags(true)}
	// The client does not use kubectl's cache.
	f.CacheDir = nil
	f.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "seamark/" + version
		// The API server limits the rate by priority and fairness.
		config.QPS, config.Burst = -1, 0
		config.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	}
	return f
}

// AddTo defines the flags in the command, and completes namespaces and contexts.
func (f *Flags) AddTo(command *cobra.Command) {
	f.AddFlags(command.Flags())
	complete(command, "namespace", f.completeNamespaces)
	complete(command, "context", f.completeContexts)
}

// AddAllNamespaces defines -A in the command.
func (f *Flags) AddAllNamespaces(command *cobra.Command) {
	command.Flags().BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "use all namespaces; --namespace and the namespace of the context are ignored")
}

// Connection is a client and the namespace that the user selected.
type Connection struct {
	// Client reads and writes. It has no cache.
	Client client.WithWatch
	// Config is the configuration of the Client.
	Config *rest.Config
	// Namespace is the selected namespace. It is empty with -A.
	Namespace string
}

// Connect returns a connection. It makes no request. The error is about a flag or a kubeconfig.
func (f *Flags) Connect() (Connection, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return Connection{}, exit.NoAccess(fmt.Errorf("read kubeconfig: %w", err))
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return Connection{}, exit.NoAccess(fmt.Errorf("read namespace of kubeconfig: %w", err))
	}
	if f.AllNamespaces {
		namespace = ""
	}
	c, err := NewClient(config)
	if err != nil {
		return Connection{}, err
	}
	return Connection{Client: c, Config: config, Namespace: namespace}, nil
}

// Unlimited returns the connection for requests that take longer than --request-timeout, such as
// watches, and the value of the flag, which is 0 if there is no limit.
func (c Connection) Unlimited() (Connection, time.Duration, error) {
	if c.Config == nil || c.Config.Timeout == 0 {
		return c, 0, nil
	}
	config := rest.CopyConfig(c.Config)
	config.Timeout = 0
	unlimited, err := NewClient(config)
	return Connection{Client: unlimited, Config: config, Namespace: c.Namespace}, c.Config.Timeout, err
}
