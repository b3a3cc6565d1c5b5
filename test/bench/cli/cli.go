// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli measures commands of the program seamark on a cluster with many pods.
package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/fill"
)

const (
	// maxSeconds and maxMiB are the budgets of a command.
	maxSeconds, maxMiB = 2, 200
	floorName          = "`kubectl get pods -A -o json`"
)

// Measures returns the measure. All commands use the same cluster, which takes a minute to fill.
func Measures() []harness.Measure {
	return []harness.Measure{{Name: "cli/commands", Rows: rows(), Run: run}}
}

// page is the command that serves a page until it is stopped.
const page = "ui"

// commands are the commands that print and end: arguments of seamark.
func commands() []string { return []string{"get", "top"} }

// measured are all commands in the order of the rows.
func measured() []string { return append(commands(), page) }

func rows() []string {
	var names []string
	for _, command := range measured() {
		names = append(names, timeRow(command), memoryRow(command))
	}
	return names
}

func timeRow(command string) string {
	if command == page {
		return fmt.Sprintf("`seamark %s -A`, 10,000 pods: time until the page has all pods", command)
	}
	return fmt.Sprintf("`seamark %s -A`, 10,000 pods: time", command)
}

func memoryRow(command string) string {
	if command == page {
		return fmt.Sprintf("`seamark %s -A`, 10,000 pods: peak memory (RSS) until the page has all pods", command)
	}
	return fmt.Sprintf("`seamark %s -A`, 10,000 pods: peak memory (RSS)", command)
}

func run(ctx context.Context, r *harness.Run) (harness.Output, error) {
	seamark, err := r.Program("seamark")
	if err != nil {
		return harness.Output{}, err
	}
	binaries, err := env.Binaries()
	if err != nil {
		return harness.Output{}, err
	}
	kubectl := filepath.Join(binaries, "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		return harness.Output{}, fmt.Errorf("%w: %w", harness.ErrSkipped, err)
	}
	server, err := r.Server(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	pods := harness.Pick(r, 10_000, 200)
	if err := create(ctx, server, pods); err != nil {
		return harness.Output{}, err
	}
	r.Log("created %d pods", pods)
	kubeconfig, err := r.Kubeconfig(server.Config)
	if err != nil {
		return harness.Output{}, err
	}
	c := &costs{dir: r.Dir, flags: []string{"-A", "--kubeconfig=" + kubeconfig}, all: map[string][]cost{}}
	// The first round fills the caches of the machine.
	for round := range harness.Pick(r, 9, 2) {
		if err := c.round(ctx, seamark, kubectl, pods); err != nil {
			return harness.Output{}, err
		}
		if round == 0 {
			clear(c.all)
		}
	}
	out := c.output()
	out.Notes = []string{fmt.Sprintf("%d runs of each command, in turns, as programs with a table to a file; `seamark ui` until "+
		"its stream has sent all pods to one client. Each pod has %d probes and one "+
		"event. The values are means.", len(c.all["top"]), fill.ProbesPerPod)}
	return out, nil
}

func create(ctx context.Context, server *harness.Server, pods int) error {
	const namespace = "games"
	if err := server.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	filler := fill.Filler{
		Config: server.Config, Client: server.Client, Namespace: namespace, Pods: pods,
		Pod: func(namespace, name, node string) *corev1.Pod {
			pod := fixture.Pod(name, node, "games", "10.0.0.1")
			pod.Namespace, pod.Labels["app"] = namespace, "game"
			return pod
		},
	}
	return filler.Fill(ctx)
}

// costs are the costs of repeated runs, by command.
type costs struct {
	dir   string
	flags []string
	all   map[string][]cost
}

// round runs every command and the floor once.
func (c *costs) round(ctx context.Context, seamark, kubectl string, pods int) error {
	if err := c.add(ctx, floorName, kubectl, "get", "pods", "-o", "json"); err != nil {
		return err
	}
	for _, command := range commands() {
		if err := c.add(ctx, command, seamark, command); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(c.file("get"))
	if err != nil {
		return fmt.Errorf("read output: %w", err)
	}
	if lines, want := bytes.Count(text, []byte("\n")), pods*fill.ProbesPerPod+1; lines != want {
		return fmt.Errorf("seamark get has printed %d lines, want %d", lines, want)
	}
	// The page of a manager is another program.
	one, err := measurePage(ctx, pods, seamark, append([]string{page, "--mode=direct"}, c.flags...)...)
	c.all[page] = append(c.all[page], one)
	return err
}

func (c *costs) add(ctx context.Context, name, program string, args ...string) error {
	one, err := measure(ctx, c.file(name), program, append(args, c.flags...)...)
	c.all[name] = append(c.all[name], one)
	return err
}

// file returns the file with the output of a command.
func (c *costs) file(name string) string {
	return filepath.Join(c.dir, strings.Fields(strings.Trim(name, "`"))[0]+".out")
}

func (c *costs) output() harness.Output {
	var out harness.Output
	floorSeconds, _ := mean(c.all[floorName], seconds)
	floorMiB, _ := mean(c.all[floorName], peak)
	for _, command := range measured() {
		elapsed, noise := mean(c.all[command], seconds)
		memory, memoryNoise := mean(c.all[command], peak)
		out.Results = append(out.Results,
			harness.Result{
				Name: timeRow(command), Value: elapsed, Unit: "s", Floor: floorSeconds, FloorName: floorName,
				Budget: harness.AtMost(maxSeconds), Noise: noise,
			},
			harness.Result{
				Name: memoryRow(command), Value: memory, Unit: "MiB", Floor: floorMiB, FloorName: floorName,
				Budget: harness.AtMost(maxMiB), Noise: memoryNoise,
			})
	}
	return out
}

func seconds(c cost) float64 { return c.Seconds }
func peak(c cost) float64    { return c.PeakMiB }

func mean(all []cost, value func(cost) float64) (mean, noise float64) {
	values := make([]float64, 0, len(all))
	for _, c := range all {
		values = append(values, value(c))
	}
	return harness.Mean(values)
}
