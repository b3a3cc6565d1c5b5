// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricsdocs writes the reference of the metrics: docs/metrics.md. It registers
// them as the two programs do, makes each have at least one series, and tells what it
// gathers, so that nothing stands on the page that the code does not have.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	asJSON := flag.Bool("json", false, "print the metrics as JSON, for programs")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdocs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, asJSON bool) error {
	programs, err := programs(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(programs)
	}
	_, err = io.WriteString(out, page(programs))
	return err
}
