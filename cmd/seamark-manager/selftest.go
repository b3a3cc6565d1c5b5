// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/config"
	"github.com/seamark-dev/seamark/internal/selftest"
)

const selftestHelp = `Makes a pod and a marker, waits until the pod carries the marks, deletes the marker
and waits until they are off. It runs in a pod of the cluster, as "helm test" has it.`

func newSelftestCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Shows that the installation marks a pod",
		Long:  selftestHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done within --timeout=%s", timeout))
			defer cancel()
			return runSelftest(ctx, cmd)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "the most time that it may take")
	cmd.AddCommand(&cobra.Command{
		Use:   "serve",
		Short: "Answers HTTP requests, in the pod that is marked",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return selftest.Serve(cmd.Context()) },
	}, &cobra.Command{
		Use:   "ask",
		Short: "Prints what the pod's server answers, as an exec probe",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return selftest.Ask(cmd.Context(), cmd.OutOrStdout()) },
	})
	return cmd
}

func runSelftest(ctx context.Context, cmd *cobra.Command) error {
	cfg, err := restConfig("")
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("making the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making the client: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	pod, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the pod's name: %w", err)
	}
	return selftest.Run(ctx, selftest.Options{
		Client: c, Namespace: config.OwnNamespace(namespaceFile), Pod: pod, Program: program, Out: cmd.OutOrStdout(), Now: time.Now,
	})
}
