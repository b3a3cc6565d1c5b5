// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Cluster builds and runs a real Kubernetes cluster on one Linux machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seamark-dev/seamark/hack/cluster/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.New(os.Stdout).ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}
