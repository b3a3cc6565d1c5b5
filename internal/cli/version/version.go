// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version implements `seamark version`, which prints the versions of the program, of Kubernetes, and of Seamark in
// the cluster.
package version

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
)

const long = `Print the version of this program, of Kubernetes, and of Seamark in the cluster.

The version of Seamark is that of its chart. It is not printed if you may not get the Deployment
seamark-manager in the namespace seamark-system, or if Seamark was not installed by its chart.

Exit codes: 0 for success; 1 if a request failed; 2 for bad input; 3 if the cluster cannot be
reached, or there is no kubeconfig. The version of this program is printed in any case.`

// The placeholder is the name of the program.
const example = `  # Print all versions
  %[1]s version

  # Print the version of this program, without a cluster
  %[1]s version --client

  # Print the version of Kubernetes
  %[1]s version -o json | jq -r .serverVersion.gitVersion`

// Versions are what the command prints.
type Versions struct {
	// Client is the version of this program.
	Client Client `json:"clientVersion"`
	// Server is the version of Kubernetes. It is nil if it was not read.
	Server *apiversion.Info `json:"serverVersion,omitempty"`
	// Seamark is the version of Seamark in the cluster, such as v0.1.0. It is empty if it is not known.
	Seamark string `json:"seamarkVersion,omitempty"`
}

// Client is the version of this program. The names are those of `kubectl version`.
type Client struct {
	// GitVersion is a version such as v0.1.0, or unknown.
	GitVersion string `json:"gitVersion"`
	// GoVersion is the version of Go that built the program.
	GoVersion string `json:"goVersion"`
	// Platform is the system and the architecture, such as linux/amd64.
	Platform string `json:"platform"`
}

// Of returns the version of this program.
func Of(version string) Client {
	return Client{GitVersion: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// String returns the version as text, with the name of the program.
func (c Client) String() string {
	return fmt.Sprintf("seamark %s (%s, %s)", c.GitVersion, c.GoVersion, c.Platform)
}

type options struct {
	genericiooptions.IOStreams
	flags      *cluster.Flags
	output     printing.Report
	clientOnly bool
	version    string
}

// New returns the command.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	o := &options{IOStreams: streams, flags: cluster.NewFlags(streams, version), version: version}
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the program and of the cluster",
		Long:    long,
		Example: fmt.Sprintf(example, program),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.output.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	command.Flags().BoolVar(&o.clientOnly, "client", false, "print only the version of this program, without a request to the cluster")
	o.output.AddTo(command)
	o.flags.AddTo(command)
	return command
}

// run prints the versions that are known, and returns the error of those of the cluster.
func (o *options) run(ctx context.Context) error {
	versions := Versions{Client: Of(o.version)}
	var unread error
	if !o.clientOnly {
		unread = o.read(ctx, &versions)
	}
	if err := o.output.Print(o.Out, versions, versions.print); err != nil {
		return exit.Failure(err)
	}
	if unread != nil {
		return fmt.Errorf("versions of the cluster are not known: %w; --client does not ask for them", unread)
	}
	return nil
}

// read reads the versions of the cluster, in two requests.
func (o *options) read(ctx context.Context, versions *Versions) error {
	connection, err := o.flags.Connect()
	if err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfig(connection.Config)
	if err != nil {
		return exit.NoAccess(fmt.Errorf("build client: %w", err))
	}
	if versions.Server, err = server.ServerVersion(); err != nil {
		return cluster.Unreachable(fmt.Errorf("get version of Kubernetes: %w", err))
	}
	manager := &metav1.PartialObjectMetadata{}
	manager.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	// Few users may read it.
	if connection.Client.Get(ctx, types.NamespacedName{Namespace: configv1alpha1.DefaultNamespace, Name: "seamark-manager"}, manager) == nil {
		versions.Seamark = manager.Labels["app.kubernetes.io/version"]
	}
	return nil
}

func (v Versions) print(out io.Writer) error {
	text := v.Client.String() + "\n"
	if v.Server != nil {
		text += "Kubernetes " + v.Server.GitVersion + "\n"
	}
	if v.Seamark != "" {
		text += "Seamark in the cluster: " + v.Seamark + "\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print versions: %w", err)
	}
	return nil
}
