// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricsdocs writes the reference of the metrics, docs/metrics.md. It registers
// Seamark's metrics as the programs do, creates at least one series of each, and prints what
// it gathers, so that the page matches the code. The metrics of libraries are a table.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	asJSON := flag.Bool("json", false, "print the metrics as JSON, for programs")
	flag.Parse()
	if err := run(os.Stdout, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdocs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, asJSON bool) error {
	programs, err := programs()
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(programs)
	}
	return writePage(out, programs)
}
