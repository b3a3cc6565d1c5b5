// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command seamark is the command line of users, also available as kubectl seamark.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/local"
)

// version is set by the linker.
var version = "unknown"

func main() {
	// Exits if this process was started as the reaper, which stops local processes after a crash.
	local.Reaper()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(exit.Code(cli.New(streams, os.Args[0], version).ExecuteContext(context.Background())))
}
