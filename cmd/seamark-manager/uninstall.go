// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seamark-dev/seamark/internal/manager/uninstall"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
)

const uninstallHelp = `Removes what Seamark has written to the cluster: the marks of all pods, the finalizers
of all markers, all NodePodProbes, ProbePlans and ProbeReports, and the RoleBindings that
the managers created for seamark-workloads. It first scales the managers and
seamark-workloads to zero and waits until no manager holds their lease. It keeps the CRDs,
the markers, and CloneSets, StatefulSets and other sets with their pods.

The chart runs this command before a release is deleted. If Seamark was installed
without the chart, run it before you delete the rest. It is safe to run it again.`

// workloadsName is the name of the Deployment and Lease of seamark-workloads.
const workloadsName = "seamark-workloads"

func newUninstallCommand(program command.Program) *cobra.Command {
	var kubeconfig config.Kubeconfig
	var namespace string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove all marks, finalizers, plans and reports from the cluster",
		Long:  uninstallHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := program.Connect(kubeconfig)
			if err != nil {
				return err
			}
			ctx, cancel := withTimeout(cmd.Context(), timeout)
			defer cancel()
			err = uninstall.Run(ctx, uninstall.Options{
				Config:    cfg,
				Namespace: namespace,
				Name:      program.Name,
				Workloads: workloadsName,
				Out:       cmd.OutOrStdout(),
			})
			if err != nil {
				return fmt.Errorf("uninstall is not complete, run it again: %w", err)
			}
			return nil
		},
	}
	kubeconfig.Bind(cmd.Flags())
	cmd.Flags().StringVar(&namespace, "namespace", config.OwnNamespace(namespaceFile), "namespace of the Deployments and Leases")
	bindTimeout(cmd, &timeout, 5*time.Minute)
	return cmd
}

func bindTimeout(cmd *cobra.Command, timeout *time.Duration, value time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", value, "maximum duration of the command")
}

// withTimeout returns a context whose cause names the flag when it expires.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not complete within --timeout=%s", timeout))
}
