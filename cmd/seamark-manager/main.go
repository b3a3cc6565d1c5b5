// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-manager compiles the plans of all nodes and marks the pods. Several
// managers can run: one is the leader, the others keep their caches in sync.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/manager/webhook"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// version is set by the linker.
var version = "unknown"

// namespaceFile contains the namespace of the pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// gcPercent is the value of GOGC if the environment does not set it. Most of the manager's memory
// is its caches, which garbage collections do not shrink, so that a heap that grows by half instead
// of doubling saves up to a quarter of a large heap. With 30,000 pods, collections take a third of the
// processor time per mark.
const gcPercent = 50

func main() { os.Exit(command.Execute(newCommand())) }

func newCommand() *cobra.Command {
	var line *config.Manager
	program := command.Program{Name: manager.Name, Version: version}
	cmd := program.Command("Compile the probe plans of all nodes and mark the pods", func(ctx context.Context) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return run(ctx, program, line, c)
	})
	line = config.NewManager(cmd.Flags(), namespaceFile)
	cmd.AddCommand(newUninstallCommand(program), newSelftestCommand(program))
	return cmd
}

func run(ctx context.Context, program command.Program, line *config.Manager, c *v1alpha1.ManagerConfiguration) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	logger := logging.New(os.Stderr, c.Logging)
	ctrllog.SetLogger(logger)
	cfg, err := program.Start(logger, line.Kubeconfig, c)
	if err != nil {
		return err
	}
	m, err := manager.New(options(cfg, c, logger))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

func options(cfg *rest.Config, c *v1alpha1.ManagerConfiguration, logger logr.Logger) manager.Options {
	return manager.Options{
		Config:                  cfg,
		LeaderElection:          *c.LeaderElection.LeaderElect,
		LeaderElectionNamespace: c.LeaderElection.ResourceNamespace,
		MetricsBindAddress:      c.Metrics.BindAddress,
		HealthProbeBindAddress:  c.Health.BindAddress,
		PprofBindAddress:        c.Pprof.BindAddress,
		Namespace:               config.OwnNamespace(namespaceFile),
		Disabled:                !c.FeatureGates[config.PodProbeMarkerGate],
		Serverless:              c.FeatureGates[config.ServerlessGate],
		Webhook:                 webhookOptions(c.Serverless.Webhook, logger),
		Grants:                  c.Grants.Resources,
		Controllers:             c.Controllers,
		Defaults:                plan.NewDefaults(c.ProbeDefaults, c.MessageUpdates),
		Excluded:                c.ExcludedNamespaces,
		Version:                 version,
		Registry:                ctrlmetrics.Registry,
		Logger:                  logger,
	}
}

func webhookOptions(c v1alpha1.Webhook, logger logr.Logger) *webhook.Options {
	options := &webhook.Options{
		Port:          int(c.Port),
		Namespace:     config.OwnNamespace(namespaceFile),
		Service:       c.ServiceName,
		Secret:        c.SecretName,
		Configuration: c.ConfigurationName,
		ClientCA:      c.ClientCAFile,
		Logger:        logger,
	}
	if c.Certificates == v1alpha1.CertificatesByCertManager {
		options.CertificateDirectory = c.CertificateDirectory
	}
	return options
}
