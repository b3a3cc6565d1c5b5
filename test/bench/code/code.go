// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package code runs the Go benchmarks of the packages that decide, without an API server.
package code

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

// benchmark is a Go benchmark with a floor.
type benchmark struct {
	row, folder, name string
	// metric is what the benchmark reports: its time divided by that of the floor.
	metric, floor string
}

func benchmarks() []benchmark {
	const encoding = "x_of_encoding"
	const workloads, copied, pod = "./internal/workloads/", "x_of_copy", "a copy of the pod"
	const markers, alone, check = "./internal/manager/marker", "x_of_alone", "the check of a marker without rivals"
	return []benchmark{
		{"compile the plan of a node", "./internal/marking/plan", "BenchmarkNode", encoding, "encoding the plan as JSON"},
		{"decide a report after one change, 110 pods", "./internal/marking/report", "BenchmarkDecide/110_pods", encoding, "encoding the slice as JSON"},
		{"decide the marks of a pod", "./internal/marking/mark", "BenchmarkDesired", encoding, "encoding the marks as JSON"},
		{"check a marker with 10 rivals", markers, "BenchmarkCheck/10_rivals", alone, check},
		{"check a marker with 100 rivals", markers, "BenchmarkCheck/100_rivals", alone, check},
		{"check a marker with 1,000 rivals", markers, "BenchmarkCheck/1000_rivals", alone, check},
		{"check all markers of a namespace with 1,000 rivals", markers, "BenchmarkCheck/all_of_1000", alone, check},
		{"event of a pod of others: CloneSets, StatefulSets, DaemonSets", workloads + "reconciler", "BenchmarkPodWithoutSet", copied, pod},
		{"event of a pod of others: BroadcastJobs, ImagePullJobs", workloads + "nodejob", "BenchmarkPodWithoutJob", copied, pod},
		{"event of a pod of others: SidecarSets", workloads + "sidecar/controller", "BenchmarkPodWithoutSidecarSet", copied, pod},
		{"schedule and evaluate a probe", "./internal/probing/worker", "BenchmarkWorker", "x_of_plain_loop", "a loop that runs the same probes"},
	}
}

// Measures returns the measure.
func Measures() []harness.Measure {
	var rows []string
	for _, b := range benchmarks() {
		rows = append(rows, b.row)
	}
	return []harness.Measure{{Name: "code", Rows: rows, Run: run}}
}

func run(b *harness.Bench) harness.Output {
	root, err := env.ModuleRoot()
	b.Must(err)
	args := []string{"test", "-run=^$", "-bench=.", "-benchtime=" + harness.Pick(b, "0.5s", "1x")}
	for _, one := range benchmarks() {
		if !slices.Contains(args, one.folder) {
			args = append(args, one.folder)
		}
	}
	command := exec.CommandContext(b.Context(), "go", args...)
	command.Dir = root
	out, err := parse(process.Output(b.T, command))
	b.Must(err)
	return out
}

// linePattern matches a result: the name, the processors, the repetitions and the values.
var linePattern = regexp.MustCompile(`(?m)^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// parse returns the results in the output of go test.
func parse(text string) (harness.Output, error) {
	metrics := map[string]map[string]float64{}
	for _, line := range linePattern.FindAllStringSubmatch(text, -1) {
		values := map[string]float64{}
		fields := strings.Fields(line[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return harness.Output{}, fmt.Errorf("parse result %q: %w", line[0], err)
			}
			values[fields[i+1]] = value
		}
		metrics[line[1]] = values
	}
	var out harness.Output
	for _, b := range benchmarks() {
		ratio, took := metrics[b.name][b.metric], metrics[b.name]["ns/op"]
		if ratio == 0 || took == 0 {
			return harness.Output{}, fmt.Errorf("no %s of %s in the output of go test:\n%s", b.metric, b.name, text)
		}
		out.Results = append(out.Results, harness.Result{
			Name: b.row, Value: took / 1000, Unit: "µs", Floor: took / 1000 / ratio, FloorName: b.floor,
		})
	}
	return out, nil
}
