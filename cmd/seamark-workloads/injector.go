// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
)

const injectorHelp = `Serves the webhook that adds the containers of SidecarSets to new pods. Only pods that a set
selects depend on it. All replicas serve: none is a leader.`

// newInjectorCommand returns the command of another program in the same file, with other permissions. It uses
// the same configuration, without the leader and the controllers.
func newInjectorCommand() *cobra.Command {
	var line *config.Workloads
	program := command.Program{Name: certificates.Name, Version: version}
	cmd := program.Command("Add the containers of SidecarSets to new pods", func(ctx context.Context) error {
		c, err := line.Load()
		if err != nil {
			return err
		}
		return runInjector(ctx, program, line, c)
	})
	cmd.Use, cmd.Long = "injector", injectorHelp
	line = config.NewWorkloads(cmd.Flags(), namespaceFile)
	return cmd
}

func runInjector(ctx context.Context, program command.Program, line *config.Workloads, c *v1alpha1.WorkloadsConfiguration) error {
	logger := logging.New(os.Stderr, c.Logging)
	ctrllog.SetLogger(logger)
	cfg, err := program.Start(logger, line.Kubeconfig, c)
	if err != nil {
		return err
	}
	options := injector.Options{
		Config: cfg, Namespace: config.OwnNamespace(namespaceFile), Port: int(c.Injector.Port), URL: c.Injector.URL, ClientCA: c.Injector.ClientCAFile,
		Lifetimes: certificates.DefaultLifetimes(), Drain: injector.Drain,
		MetricsBindAddress: c.Metrics.BindAddress, HealthProbeBindAddress: c.Health.BindAddress, PprofBindAddress: c.Pprof.BindAddress,
		Registry: ctrlmetrics.Registry, Logger: logger,
	}
	if c.Injector.Certificates == v1alpha1.CertificatesByCertManager {
		options.CertificateDirectory = c.Injector.CertificateDirectory
	}
	serving, err := injector.NewProgram(options)
	if err != nil {
		return err
	}
	return serving.Run(ctx)
}
