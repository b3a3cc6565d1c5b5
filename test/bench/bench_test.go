// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench measures what Seamark costs, against floors that it measures in the same run. It
// starts an API server, etcd and Seamark's programs, prints a table per measure, keeps all values in a
// file, and writes docs/performance.md and the pages in docs/performance.
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/test/bench/agent"
	"github.com/seamark-dev/seamark/test/bench/cli"
	"github.com/seamark-dev/seamark/test/bench/code"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/manager"
	"github.com/seamark-dev/seamark/test/bench/page"
	"github.com/seamark-dev/seamark/test/bench/reports"
	"github.com/seamark-dev/seamark/test/bench/workloads"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// sizesVariable selects the sizes: full, or quick to test that each measure works. Without it, nothing is
// measured.
const sizesVariable = "SEAMARK_BENCH"

// measures returns all measures in the order of the page.
func measures() []harness.Measure {
	return slices.Concat(reports.Measures(), manager.Measures(), workloads.Measures(), agent.Measures(), cli.Measures(), code.Measures())
}

// TestMain also runs what must be measured in a process of its own.
func TestMain(m *testing.M) {
	// Discard the warnings of the API server.
	ctrllog.SetLogger(logr.Discard())
	if len(os.Args) > 1 {
		for argument, run := range map[string]func([]string) error{agent.FloorArgument: agent.FloorMain, cli.Argument: cli.Main} {
			if os.Args[1] != argument {
				continue
			}
			if err := run(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

type run struct {
	quick   bool
	docs    string
	data    string
	machine page.Machine

	mu      sync.Mutex
	records page.Records
}

// TestMeasures runs the measures and writes the page. A measure that fails does not stop the others, and
// one that is skipped keeps its earlier results. With quick sizes, the measures run at the same time, and
// the page and the values are not kept.
func TestMeasures(t *testing.T) {
	r := &run{}
	root, err := env.ModuleRoot()
	expect.NoError(t, err)
	r.docs, r.data = filepath.Join(root, "docs"), filepath.Join(os.Getenv("SEAMARK_BIN"), "bench", "results.json")
	switch sizes := os.Getenv(sizesVariable); sizes {
	case "":
		t.Skip(sizesVariable + " is not set")
	case "quick":
		r.quick, r.data = true, filepath.Join(t.TempDir(), "results.json")
	case "full":
	default:
		t.Fatalf("%s: %q is invalid: must be full or quick", sizesVariable, sizes)
	}
	if r.records, err = page.Load(r.data); err != nil {
		t.Fatal(err)
	}
	server, err := env.Binaries()
	expect.NoError(t, err)
	r.machine = page.Describe(t.Context(), root, server, time.Now().UTC().Format(time.DateOnly))
	t.Cleanup(func() { r.write(t) })
	for _, m := range measures() {
		t.Run(m.Name, func(t *testing.T) {
			if r.quick {
				t.Parallel()
			}
			r.measure(t, m)
		})
	}
}

// measure runs a measure and adds its record.
func (r *run) measure(t *testing.T, m harness.Measure) {
	var out harness.Output
	defer func() {
		if t.Skipped() {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.records.Add(m.Name, r.machine, out, t.Failed())
		expect.Success(t, r.records.Save(r.data))
	}()
	out = m.Run(&harness.Bench{T: t, Quick: r.quick})
	expect.NoError(t, m.Check(out))
	t.Logf("\n%s", page.Table(out.Results))
}

// write writes the pages, or only renders them in a quick run.
func (r *run) write(t *testing.T) {
	pages, err := page.Read(r.docs)
	expect.NoError(t, err)
	if pages, err = page.Render(pages, measures(), r.records); err != nil {
		t.Fatal(err)
	}
	if r.quick {
		return
	}
	expect.NoError(t, pages.Write(r.docs))
}
