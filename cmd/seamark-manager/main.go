// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-manager compiles the plans of all nodes and marks the pods. Two or
// more of it may run: one leads, the others wait with warm caches.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

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

// flags are the program's flags, as given.
type flags struct {
	kubeconfig     string
	leaderElect    bool
	leaseNamespace string
	metricsAddress string
	healthAddress  string
	verbosity      int
}

func newCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:          manager.Name,
		Short:        "Compiles the probe plans of all nodes and marks the pods",
		Args:         cobra.NoArgs,
		Version:      version,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the API server; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "wait to be elected before doing any work; without it only one manager may run")
	set.StringVar(&f.leaseNamespace, "leader-election-namespace", "", "namespace of the lease; without it the pod's own, else seamark-system")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8080", "host:port that serves /metrics; 0 serves none")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "host:port that serves /healthz and /readyz; 0 serves none")
	set.IntVarP(&f.verbosity, "v", "v", 0, "log verbosity, 0 to 10")
	return cmd
}

func (f flags) validate() error {
	metrics := validateAddress("metrics-bind-address", f.metricsAddress)
	health := validateAddress("health-probe-bind-address", f.healthAddress)
	if err := errors.Join(metrics, health); err != nil {
		return err
	}
	if wrong := validation.ValidateNamespaceName(leaseNamespace(f.leaseNamespace), false); len(wrong) > 0 {
		return fmt.Errorf("--leader-election-namespace=%q: %s", f.leaseNamespace, strings.Join(wrong, "; "))
	}
	if f.verbosity < 0 || f.verbosity > 10 {
		return fmt.Errorf("--v=%d: want 0 to 10", f.verbosity)
	}
	return nil
}

// validateAddress tells whether it is an address; the servers tell whether it is free.
func validateAddress(flag, address string) error {
	if _, err := net.ResolveTCPAddr("tcp", address); address != "0" && err != nil {
		return fmt.Errorf("--%s=%q: want host:port, :port or 0: %w", flag, address, err)
	}
	return nil
}

func run(ctx context.Context, f flags) error {
	if err := f.validate(); err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}))
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	cfg, err := restConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	m, err := manager.New(ctx, manager.Options{
		Config:                  cfg,
		LeaderElection:          f.leaderElect,
		LeaderElectionNamespace: leaseNamespace(f.leaseNamespace),
		MetricsBindAddress:      f.metricsAddress,
		HealthProbeBindAddress:  f.healthAddress,
		Defaults:                plan.KubernetesDefaults(),
		Registry:                ctrlmetrics.Registry,
		Logger:                  logger,
	})
	if err != nil {
		return err
	}
	logger.Info("Starting the manager", "version", version, "apiServer", cfg.Host)
	return m.Run(ctx)
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

func leaseNamespace(flag string) string {
	if flag != "" {
		return flag
	}
	if own, err := os.ReadFile(namespaceFile); err == nil && strings.TrimSpace(string(own)) != "" {
		return strings.TrimSpace(string(own))
	}
	return "seamark-system"
}
