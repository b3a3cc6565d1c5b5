// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark-agent runs the probes of its node and reports their states. It runs on
// every node.
package main

import (
	"context"
	"fmt"
	stdlog "log"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(command.Execute(newCommand())) }

func newCommand() *cobra.Command {
	var line *config.Agent
	program := command.Program{Name: "seamark-agent", Version: version}
	cmd := program.Command("Run the probes of a node and report their states", func(ctx context.Context) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return run(ctx, program, line, c)
	})
	line = config.NewAgent(cmd.Flags(), os.Getenv("NODE_NAME"))
	return cmd
}

func run(ctx context.Context, program command.Program, line *config.Agent, c *v1alpha1.AgentConfiguration) error {
	adapt := adaptProcessors(int(c.ProbeRate))
	log := logging.New(os.Stderr, c.Logging).WithValues("node", line.NodeName)
	stdlog.SetFlags(0)
	stdlog.SetOutput(logging.Standard(log))
	cfg, err := program.Start(log, line.Kubeconfig, c)
	if err != nil {
		return err
	}
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
	runtime, err := cri.Connect(ctx, log, c.CRIEndpoint, metrics.RuntimeCalled)
	if err != nil {
		return fmt.Errorf("criEndpoint %q: %w", c.CRIEndpoint, err)
	}
	defer runtime.Close()
	a, err := agent.New(agent.Options{
		NodeName: line.NodeName, Config: cfg, Runtime: runtime, Version: version,
		ExecConcurrency: int(c.ExecConcurrency), ProbeRate: int(c.ProbeRate), ReportInterval: c.ReportInterval.Duration,
		Metrics: metrics, Gatherer: registry, Listener: listener, Profiles: profiles, Log: log, Planned: adapt,
	})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// listen returns nil if the address disables the server.
func listen(field, address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil //nolint:nilnil // the server is disabled
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %q: must be a free address and port, or 0: %w", field, address, err)
	}
	return listener, nil
}
