// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster connects the commands of the program seamark to a cluster, as kubectl does, and reads what they show. What the
// user may not read is recorded, and names are completed and suggested.
//
// Errors of this package have the right exit code: see package exit.
package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
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

// connectionFlag is the annotation of the flags of a connection.
const connectionFlag = "seamark.dev/connection"

// IsConnectionFlag reports whether a flag of a command is one of those that AddTo defines: they are the same in all
// commands that use a cluster.
func IsConnectionFlag(flag *pflag.Flag) bool {
	_, is := flag.Annotations[connectionFlag]
	return is
}

// AddTo defines the flags in the command, and completes namespaces and contexts.
func (f *Flags) AddTo(command *cobra.Command) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddFlags(flags)
	flags.VisitAll(func(flag *pflag.Flag) { flag.Annotations = map[string][]string{connectionFlag: nil} })
	command.Flags().AddFlagSet(flags)
	f.CompleteNames(command, "namespace", namespaces)
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
	if err := f.checkConfigured(config); err != nil {
		return Connection{}, exit.NoAccess(err)
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return Connection{}, exit.NoAccess(fmt.Errorf("read namespace of kubeconfig: %w", err))
	}
	if f.AllNamespaces {
		namespace = ""
	}
	c, err := newClient(config)
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
	unlimited, err := newClient(config)
	return Connection{Client: unlimited, Config: config, Namespace: c.Namespace}, c.Config.Timeout, err
}

// Selector is --selector: the labels of pods, as kubectl selects them.
type Selector struct {
	// Text is the value of the flag. Empty selects all pods.
	Text string
}

// AddTo defines -l in the command.
func (s *Selector) AddTo(command *cobra.Command) {
	command.Flags().StringVarP(&s.Text, "selector", "l", "", "only the pods with these labels, for example app=game,zone!=a")
}

// Parse returns the selector, or nil if it selects all pods.
func (s *Selector) Parse() (labels.Selector, error) {
	if s.Text == "" {
		return nil, nil //nolint:nilnil // a query without a selector selects all
	}
	selector, err := labels.Parse(s.Text)
	if err != nil {
		return nil, fmt.Errorf("--selector: %q is invalid: %w", s.Text, err)
	}
	return selector, nil
}

// PodNames returns the names of pods among the arguments of a command, which may begin with pod/, each
// once. The error is about an empty name, one with another kind, a kind without a name, or a name with -A.
func (f *Flags) PodNames(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "pods/"), "pod/")
		switch {
		case name == "":
			return args, fmt.Errorf("name of a pod: %q is invalid: must not be empty", arg)
		case strings.Contains(name, "/"):
			return args, fmt.Errorf("name of a pod: %q is invalid: must be NAME or pod/NAME", arg)
		case arg == "pod" || arg == "pods": // A pod with such a name is pod/pods.
			return args, fmt.Errorf("name of a pod: %q is invalid: must be NAME or pod/NAME, without a kind before it", arg)
		case f.AllNamespaces:
			return args, fmt.Errorf("--all-namespaces: must not be used with the name of a pod: %q", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, nil
}

// Where returns the namespace for a message. It begins with a blank.
func Where(namespace string) string {
	if namespace == "" {
		return " in any namespace"
	}
	return " in namespace " + namespace
}
