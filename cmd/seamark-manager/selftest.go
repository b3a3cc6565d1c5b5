// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/selftest"
	"github.com/seamark-dev/seamark/internal/program/command"
	"github.com/seamark-dev/seamark/internal/program/config"
)

const selftestHelp = `Creates a pod and a marker, waits until the pod is marked, deletes the marker and waits
until the marks are removed. It must run in a pod of the cluster, as "helm test" does.`

func newSelftestCommand(program command.Program) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Check that the installation marks a pod",
		Long:  selftestHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withTimeout(cmd.Context(), timeout)
			defer cancel()
			return runSelftest(ctx, program, cmd.OutOrStdout())
		},
	}
	bindTimeout(cmd, &timeout, 2*time.Minute)
	cmd.AddCommand(&cobra.Command{
		Use:   "serve",
		Short: "Serve HTTP in the marked pod",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return selftest.Serve(cmd.Context()) },
	}, &cobra.Command{
		Use:   "ask",
		Short: "Print the name of the pod, as an exec probe",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return selftest.Greet(cmd.OutOrStdout()) },
	})
	return cmd
}

func runSelftest(ctx context.Context, program command.Program, out io.Writer) error {
	cfg, err := program.Connect("")
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("create the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("create the client: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's path: %w", err)
	}
	pod, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("get the pod's name: %w", err)
	}
	return selftest.Run(ctx, selftest.Options{
		Client: c, Namespace: config.OwnNamespace(namespaceFile), Pod: pod, Program: executable, Out: out, Now: time.Now,
	})
}
