// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-agent runs the probes of its own node and reports their states. One
// runs on every node.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/config"
	"github.com/seamark-dev/seamark/internal/logging"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
)

// version is set by the linker.
var version = "unknown"

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
		Use:          "seamark-agent",
		Short:        "Runs the probes of its node and reports their states",
		Args:         cobra.NoArgs,
		Version:      version,
		SilenceUsage: true,
	}
	line := config.NewAgent(cmd.Flags(), os.Getenv("NODE_NAME"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return run(cmd.Context(), line, c)
	}
	return cmd
}

func run(ctx context.Context, line *config.Agent, c *v1alpha1.AgentConfiguration) error {
	effective, err := config.JSON(c)
	if err != nil {
		return err
	}
	log := logging.New(os.Stderr, c.Logging).WithValues("node", line.NodeName)
	klog.SetLogger(log)
	cfg, err := restConfig(line.Kubeconfig)
	if err != nil {
		return err
	}
	log.Info("Starting the agent", "version", version, "apiServer", cfg.Host, "configuration", effective)
	listener, err := listen("metrics.bindAddress", c.Metrics.BindAddress)
	if err != nil {
		return err
	}
	profiles, err := listen("pprof.bindAddress", c.Pprof.BindAddress)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics := agentmetrics.New(registry)
	runtime, err := agent.Connect(ctx, log, c.CRIEndpoint, metrics.RuntimeCalled)
	if err != nil {
		return fmt.Errorf("criEndpoint %q: %w", c.CRIEndpoint, err)
	}
	defer runtime.Close()
	a, err := agent.New(agent.Options{
		NodeName: line.NodeName, Config: cfg, Runtime: runtime, Version: version,
		ExecConcurrency: int(c.ExecConcurrency), ReportInterval: c.ReportInterval.Duration,
		Metrics: metrics, Gatherer: registry, Listener: listener, Profiles: profiles, Rand: rand.Float64, Log: log,
	})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%q: finding the API server: %w", kubeconfig, err)
	}
	config.UserAgent = "seamark-agent/" + version
	return config, nil
}

// listen returns nothing where nobody is to be served.
func listen(field, address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil //nolint:nilnil // nobody is to be served
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %q: want a free address and port, or 0: %w", field, address, err)
	}
	return listener, nil
}
