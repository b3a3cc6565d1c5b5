// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-workloads runs the controllers of the workloads, such as CloneSet. Several can
// run: one is the leader, the others keep their caches in sync.
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads"
)

// version is set by the linker.
var version = "unknown"

// namespaceFile contains the namespace of the pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() { os.Exit(command.Execute(newCommand())) }

func newCommand() *cobra.Command {
	var line *config.Workloads
	program := command.Program{Name: workloads.Name, Version: version}
	cmd := program.Command("Run the controllers of the workloads", func(ctx context.Context) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return run(ctx, program, line, c)
	})
	line = config.NewWorkloads(cmd.Flags(), namespaceFile)
	cmd.AddCommand(newInjectorCommand())
	return cmd
}

func run(ctx context.Context, program command.Program, line *config.Workloads, c *v1alpha1.WorkloadsConfiguration) error {
	logger := logging.New(os.Stderr, c.Logging)
	ctrllog.SetLogger(logger)
	cfg, err := program.Start(logger, line.Kubeconfig, c)
	if err != nil {
		return err
	}
	w, err := workloads.New(options(cfg, c, logger))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func options(cfg *rest.Config, c *v1alpha1.WorkloadsConfiguration, logger logr.Logger) workloads.Options {
	return workloads.Options{
		Config:                  cfg,
		LeaderElection:          *c.LeaderElection.LeaderElect,
		LeaderElectionNamespace: c.LeaderElection.ResourceNamespace,
		MetricsBindAddress:      c.Metrics.BindAddress,
		HealthProbeBindAddress:  c.Health.BindAddress,
		PprofBindAddress:        c.Pprof.BindAddress,
		Controllers:             c.Controllers,
		RecreateForClaims:       c.FeatureGates[config.RecreateForClaimsGate],
		PreDownloadDaemonSets:   c.FeatureGates[config.PreDownloadDaemonSetGate],
		PreDownloadInPlace:      c.FeatureGates[config.PreDownloadInPlaceGate],
		ImagePull:               c.ImagePull,
		Namespace:               config.OwnNamespace(namespaceFile),
		ExcludedNamespaces:      c.ExcludedNamespaces,
		InjectorURL:             c.Injector.URL,
		MetadataAllowed:         c.FeatureGates[config.SidecarSetMetadataGate],
		OpenKruiseNamespace:     c.OpenKruise.Namespace,
		Version:                 version,
		Registry:                ctrlmetrics.Registry,
		Logger:                  logger,
	}
}
