// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli measures commands of the program seamark on a cluster with many pods.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/fill"
	"github.com/seamark-dev/seamark/test/uistream"
)

const (
	floorName = "`kubectl get pods -A -o json`"
	// page is the command that serves a page until it is stopped.
	page = "ui"
)

// commands are the measured commands in the order of the rows: arguments of seamark.
func commands() []string { return []string{"get", "top", page} }

// Measures returns the measure. All commands use the same cluster, which takes a minute to fill.
func Measures() []harness.Measure {
	var rows []string
	for _, command := range commands() {
		rows = append(rows, timeRow(command), memoryRow(command))
	}
	return []harness.Measure{{Name: "cli/commands", Rows: rows, Run: run}}
}

func timeRow(command string) string {
	if command == page {
		return row(command) + "time until the page has all pods"
	}
	return row(command) + "time"
}

func memoryRow(command string) string {
	if command == page {
		return row(command) + "peak memory (RSS) until the page has all pods"
	}
	return row(command) + "peak memory (RSS)"
}

func row(command string) string { return fmt.Sprintf("`seamark %s -A`, 10,000 pods: ", command) }

func run(b *harness.Bench) harness.Output {
	seamark, kubectl := b.SeamarkProgram("seamark"), b.KubernetesProgram("kubectl")
	server, pods := b.Server(), harness.Pick(b, 10_000, 200)
	filler := fill.Filler{
		Config: server.Config, Client: server.Client, Namespace: server.Namespace(b.T), Pods: pods,
		Pod: func(namespace, name, node string) *corev1.Pod {
			pod := fixture.Pod(name, node, "games", "10.0.0.1")
			pod.Namespace, pod.Labels["app"] = namespace, "game"
			return pod
		},
	}
	b.Must(filler.Fill(b.Context()))
	b.Logf("created %d pods", pods)
	flags := []string{"-A", "--kubeconfig=" + env.Kubeconfig(b.T, server.Config)}
	all := map[string][]cost{}
	// The first round fills the caches of the machine.
	for round := range harness.Pick(b, 9, 2) {
		floor, _ := ended(b, append([]string{kubectl, "get", "pods", "-o", "json"}, flags...)...)
		get, text := ended(b, append([]string{seamark, "get"}, flags...)...)
		if lines, want := bytes.Count(text, []byte("\n")), pods*fill.ProbesPerPod+1; lines != want {
			b.Fatalf("seamark get has printed %d lines, want %d", lines, want)
		}
		top, _ := ended(b, append([]string{seamark, "top"}, flags...)...)
		served := opened(b, pods, seamark, append([]string{page}, flags...)...)
		if round == 0 {
			continue
		}
		for name, one := range map[string]cost{floorName: floor, "get": get, "top": top, page: served} {
			all[name] = append(all[name], one)
		}
	}
	out := output(all)
	out.Notes = []string{fmt.Sprintf("%d runs of each command, in turns, as programs with a table to a file; `seamark ui` until "+
		"its stream has sent all pods to one client. Each pod has %d probes and one "+
		"event. The values are means.", len(all["top"]), fill.ProbesPerPod)}
	return out
}

// Argument is the first argument with which the benchmark starts itself to measure a command. A
// child of the benchmark itself would have at least its peak memory: Linux counts the memory that
// a process shares with its parent before it starts a program.
const Argument = "command-cost"

// cost is what one run of a command takes.
type cost struct {
	// Seconds is the time from start to end.
	Seconds float64 `json:"seconds"`
	// PeakMiB is the largest resident memory.
	PeakMiB float64 `json:"peakMiB"`
}

// Main runs the command in args with the output to the file in args[0], and prints its cost.
func Main(args []string) (err error) {
	if len(args) < 2 {
		return errors.New("the arguments must be a file and a command")
	}
	file, err := os.Create(args[0])
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	command := exec.Command(args[1], args[2:]...) //nolint:gosec // The benchmark has built the arguments.
	command.Stdout, command.Stderr = file, os.Stderr
	start := time.Now()
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	c := cost{Seconds: time.Since(start).Seconds()}
	usage, isKnown := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !isKnown {
		return errors.New("the system does not report the memory of a process")
	}
	// Linux counts in KiB.
	c.PeakMiB = float64(usage.Maxrss) / 1024
	if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
		return fmt.Errorf("print cost: %w", err)
	}
	return nil
}

// ended runs a command and returns its cost and output.
func ended(b *harness.Bench, command ...string) (cost, []byte) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "out")
	c, err := harness.Answer[cost](b.Self(append([]string{Argument, file}, command...)...))
	expect.NoErrorf(b, err, "%s", strings.Join(command, " "))
	text, err := os.ReadFile(file)
	b.Must(err)
	return c, text
}

func output(all map[string][]cost) (out harness.Output) {
	seconds := func(c cost) float64 { return c.Seconds }
	memory := func(c cost) float64 { return c.PeakMiB }
	result := func(name, unit, command string, value func(cost) float64, limit float64) harness.Result {
		mean := func(all []cost) (mean, noise float64) {
			var values []float64
			for _, c := range all {
				values = append(values, value(c))
			}
			return harness.Mean(values)
		}
		r := harness.Result{Name: name, Unit: unit, FloorName: floorName, Budget: harness.AtMost(limit)}
		r.Value, r.Noise = mean(all[command])
		r.Floor, _ = mean(all[floorName])
		return r
	}
	for _, command := range commands() {
		out.Results = append(out.Results, result(timeRow(command), "s", command, seconds, 2), result(memoryRow(command), "MiB", command, memory, 200))
	}
	return out
}

// maxWait is how long a page may take before the measure fails.
const maxWait = time.Minute

// opened runs a command that serves a page until its stream has sent the whole state. The time
// of the cost starts with the process. The number of pods must be right.
//
// The command is a child of the benchmark itself, because the kernel counts its peak memory from
// the start of the program in it.
func opened(b *harness.Bench, pods int, program string, args ...string) (c cost) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), maxWait)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	b.Must(err)
	start := time.Now()
	b.Must(command.Start())
	events, err := openPage(ctx, out)
	c.Seconds = time.Since(start).Seconds()
	usage, usageErr := harness.UsageOf(command.Process.Pid)
	c.PeakMiB = float64(usage.Peak) / harness.Mebibyte
	if err := errors.Join(err, usageErr, command.Process.Signal(os.Interrupt), command.Wait()); err != nil {
		b.Fatalf("%s: %v; %s", command, err, &log)
	}
	// This is decoded only now, because it takes processor time.
	b.Must(checkPods(events, pods))
	return c
}

// openPage opens the page whose URL is on the output of a command, and returns the data of the
// events of its stream that have pods. It reads the stream until its state is complete.
func openPage(ctx context.Context, output io.Reader) ([][]byte, error) {
	page, err := uistream.Visit(ctx, output)
	if err != nil {
		return nil, fmt.Errorf("open the page: %w", err)
	}
	defer page.Client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.Base+"/api/v1/stream", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	response, err := page.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("open the stream: status %s", response.Status)
	}
	return readStream(response.Body)
}

// readStream returns the data of the events that have pods, up to the event that the state is
// complete.
func readStream(stream io.Reader) ([][]byte, error) {
	var pods [][]byte
	reader := uistream.NewReader(stream)
	for {
		e, ok := reader.Next()
		switch {
		case !ok:
			return nil, errors.New("the stream has ended before its state was complete")
		case e.Name == "pods":
			pods = append(pods, e.Data)
		case e.Name == "ready":
			return pods, nil
		case e.Name == "end":
			return nil, fmt.Errorf("the stream has ended: %s", e.Data)
		}
	}
}

// checkPods returns an error unless the events have so many pods.
func checkPods(events [][]byte, want int) error {
	keys := map[string]bool{}
	for _, data := range events {
		var part model.Pods[struct {
			Key string `json:"key"`
		}]
		if err := json.Unmarshal(data, &part); err != nil {
			return fmt.Errorf("parse pods: %w", err)
		}
		for _, pod := range part.Pods {
			keys[pod.Key] = true
		}
	}
	return await.ErrorIf(len(keys) != want, "the page has %d pods, want %d", len(keys), want)
}
