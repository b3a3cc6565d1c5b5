// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command contains what the programs that run in a cluster share: a command that stops
// on signals, and the setup of logging and of the connection to the API server.
package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/seamark-dev/seamark/internal/program/config"
)

// Program is a program of Seamark.
type Program struct {
	// Name of the program, which is also the name of its user agent.
	Name string
	// Version of the program.
	Version string
}

// Command returns a command without positional arguments that runs the program.
func (p Program) Command(short string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:          p.Name,
		Short:        short,
		Args:         cobra.NoArgs,
		Version:      p.Version,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
}

// Connect returns the configuration of the client that the program uses.
func (p Program) Connect(kubeconfig config.Kubeconfig) (*rest.Config, error) {
	return kubeconfig.Client(p.Name + "/" + p.Version)
}

// Start makes log the logger of the client library, connects to the API server, and logs
// the effective configuration, which contains no secrets.
func (p Program) Start(log logr.Logger, kubeconfig config.Kubeconfig, configuration any) (*rest.Config, error) {
	effective, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	klog.SetLogger(log)
	cfg, err := p.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	log.Info("Starting "+p.Name, "version", p.Version, "apiServer", cfg.Host, "configuration", json.RawMessage(effective))
	return cfg, nil
}

// Execute runs the command, whose context ends on SIGINT and SIGTERM, and returns the exit
// code of the program.
func Execute(cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cmd.ExecuteContext(ctx); err != nil {
		return 1
	}
	return 0
}
