// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark is the user's command line.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/local"
)

// version is set by the linker.
var version = "unknown"

func main() {
	// The program runs itself once more, to end what it started should it crash.
	local.Reaper()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.ExitCode(cli.New(streams, version).ExecuteContext(context.Background())))
}
