// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/seamark-dev/seamark/internal/config"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/uninstall"
)

const uninstallHelp = `Takes off the cluster what Seamark has written: the marks of all pods, the finalizer
of all markers, all NodePodProbes. First it scales the managers to none and takes
their lease. What it keeps are the CRDs and the markers themselves.

The chart runs it before a release is deleted. Where Seamark was installed otherwise,
run it before deleting the rest. It may be run again.`

func newUninstallCommand() *cobra.Command {
	var kubeconfig, namespace string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Takes all marks, finalizers and plans off the cluster",
		Long:  uninstallHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// What the client library has to say of the lease that is no failure, the steps say.
			klog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
			cfg, err := restConfig(kubeconfig)
			if err != nil {
				return err
			}
			host, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("naming the holder of the lease: %w", err)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done within --timeout=%s", timeout))
			defer cancel()
			_, err = uninstall.Run(ctx, uninstall.Options{
				Config:    cfg,
				Namespace: namespace,
				Name:      manager.Name,
				Identity:  fmt.Sprintf("%s_uninstall_%d", host, os.Getpid()),
				Out:       cmd.OutOrStdout(),
			})
			if err != nil {
				return fmt.Errorf("uninstall is not complete, run it again: %w", err)
			}
			return nil
		},
	}
	set := cmd.Flags()
	set.StringVar(&kubeconfig, "kubeconfig", "", "file that says how to reach the API server; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
	set.StringVar(&namespace, "namespace", config.OwnNamespace(namespaceFile), "namespace of the managers' deployment and lease")
	set.DurationVar(&timeout, "timeout", 5*time.Minute, "the most time that it may take")
	return cmd
}
