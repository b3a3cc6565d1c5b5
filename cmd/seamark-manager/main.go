// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-manager compiles the plans of all nodes and marks the pods. Two or
// more of it may run: one leads, the others wait with warm caches.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/config"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/plan"
)

// version is set by the linker.
var version = "unknown"

// namespaceFile holds the pod's own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:          manager.Name,
		Short:        "Compiles the probe plans of all nodes and marks the pods",
		Args:         cobra.NoArgs,
		Version:      version,
		SilenceUsage: true,
	}
	line := config.NewManager(cmd.Flags(), namespaceFile)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return run(cmd.Context(), line.Kubeconfig, c)
	}
	cmd.AddCommand(newUninstallCommand(), newSelftestCommand())
	return cmd
}

func run(ctx context.Context, kubeconfig string, c *v1alpha1.ManagerConfiguration) error {
	effective, err := config.JSON(c)
	if err != nil {
		return err
	}
	logger := logging.New(os.Stderr, c.Logging)
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	logger.Info("Starting the manager", "version", version, "apiServer", cfg.Host, "configuration", effective)
	m, err := manager.New(ctx, options(cfg, c, logger))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// options says to the manager what the configuration says.
func options(cfg *rest.Config, c *v1alpha1.ManagerConfiguration, logger logr.Logger) manager.Options {
	return manager.Options{
		Config:                  cfg,
		LeaderElection:          *c.LeaderElection.LeaderElect,
		LeaderElectionNamespace: c.LeaderElection.ResourceNamespace,
		MetricsBindAddress:      c.Metrics.BindAddress,
		HealthProbeBindAddress:  c.Health.BindAddress,
		PprofBindAddress:        c.Pprof.BindAddress,
		Disabled:                !c.FeatureGates[config.PodProbeMarkerGate],
		Serverless:              c.FeatureGates[config.ServerlessGate],
		Webhook:                 webhookOptions(c.Serverless.Webhook, logger),
		Controllers:             c.Controllers,
		Defaults:                plan.Defaults(c.ProbeDefaults),
		Version:                 version,
		Registry:                ctrlmetrics.Registry,
		Logger:                  logger,
	}
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%q: finding the API server: %w", kubeconfig, err)
	}
	cfg.UserAgent = manager.Name + "/" + version
	return cfg, nil
}
