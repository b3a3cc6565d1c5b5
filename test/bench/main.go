// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Seamark costs, against floors that it measures in the same run. It
// starts an API server, etcd and Seamark's programs, prints a table, keeps all values in a file,
// and writes docs/performance.md with its pictures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/test/bench/agent"
	"github.com/seamark-dev/seamark/test/bench/cli"
	"github.com/seamark-dev/seamark/test/bench/code"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/manager"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
	"github.com/seamark-dev/seamark/test/bench/page"
	"github.com/seamark-dev/seamark/test/bench/reports"
	"github.com/seamark-dev/seamark/test/bench/workloads"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// measures returns all measures in the order of the page.
func measures() []harness.Measure {
	return slices.Concat(reports.Measures(), manager.Measures(), workloads.Measures(), agent.Measures(), cli.Measures(), code.Measures())
}

type options struct {
	run            *regexp.Regexp
	quick          bool
	list           bool
	bin, data, out string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == nodeload.Argument {
		exit(nodeload.Main(os.Args[2:], os.Stdin, os.Stdout))
		return
	}
	if len(os.Args) > 1 && os.Args[1] == cli.Argument {
		exit(cli.Main(os.Args[2:], os.Stdout))
		return
	}
	var o options
	pattern := flag.String("run", "", "regular expression of the measures to run; default all")
	flag.BoolVar(&o.quick, "quick", false, "measure with small sizes, to test the harness; the values are not comparable")
	flag.BoolVar(&o.list, "list", false, "list the measures and exit")
	flag.StringVar(&o.bin, "bin", os.Getenv("SEAMARK_BIN"), "folder of Seamark's programs; default $SEAMARK_BIN or bin/ in the module's root")
	flag.StringVar(&o.data, "data", "", "file that keeps the values of all measures; default bench/results.json in the folder of the programs")
	flag.StringVar(&o.out, "out", "", "folder that has performance.md; default docs/ in the module's root, or a temporary folder with -quick")
	flag.Parse()
	// Discard the warnings of the API server.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if o.run, err = regexp.Compile(*pattern); err == nil {
		err = bench(ctx, o)
	}
	stop()
	exit(err)
}

// exit prints an error and ends the program.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) error {
	if o.list {
		for _, m := range measures() {
			fmt.Println(m.Name)
		}
		return nil
	}
	root, err := env.ModuleRoot()
	if err != nil {
		return err
	}
	if o.bin == "" {
		o.bin = filepath.Join(root, "bin")
	}
	docs := filepath.Join(root, "docs")
	if o.quick {
		folder, err := os.MkdirTemp("", "seamark-bench-")
		if err != nil {
			return fmt.Errorf("create folder: %w", err)
		}
		defer os.RemoveAll(folder)
		o.data, o.out = filepath.Join(folder, "results.json"), first(o.out, folder)
	}
	o.data, o.out = first(o.data, filepath.Join(o.bin, "bench", "results.json")), first(o.out, docs)
	records, err := page.Load(o.data)
	if err != nil {
		return err
	}
	server, err := env.Binaries()
	if err != nil {
		return err
	}
	machine := page.Describe(ctx, root, server, time.Now().UTC().Format(time.DateOnly))
	failures := runAll(ctx, o, records, machine)
	text, err := os.ReadFile(filepath.Join(docs, page.Name))
	if err != nil {
		return errors.Join(failures, fmt.Errorf("read page: %w", err))
	}
	files, err := page.Render(text, measures(), records)
	if err != nil {
		return errors.Join(failures, err)
	}
	return errors.Join(failures, files.Write(o.out))
}

// runAll runs the selected measures and adds their records. An error does not stop the others.
func runAll(ctx context.Context, o options, records page.Records, machine page.Machine) error {
	var failures []error
	for _, m := range measures() {
		if !o.run.MatchString(m.Name) || ctx.Err() != nil {
			continue
		}
		fmt.Printf("=== %s\n", m.Name)
		start := time.Now()
		out, err := harness.Do(ctx, m, o.quick, o.bin, os.Stdout)
		if errors.Is(err, harness.ErrSkipped) {
			fmt.Printf("SKIPPED: %v\n\n", err)
			continue
		}
		if err != nil {
			fmt.Printf("failed after %.0f s: %v\n\n", time.Since(start).Seconds(), err)
			failures = append(failures, err)
		} else {
			fmt.Printf("%stook %.0f s\n\n", page.Table(out.Results), time.Since(start).Seconds())
		}
		if ctx.Err() != nil {
			break
		}
		records.Add(m.Name, machine, out, err != nil)
		if err := records.Save(o.data); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(append(failures, ctx.Err())...)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
