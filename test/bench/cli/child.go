// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

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
func Main(args []string, out io.Writer) (err error) {
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
	elapsed := time.Since(start)
	usage, isKnown := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !isKnown {
		return errors.New("the system does not report the memory of a process")
	}
	// Linux counts in KiB.
	text, err := json.Marshal(cost{Seconds: elapsed.Seconds(), PeakMiB: float64(usage.Maxrss) / 1024})
	if err != nil {
		return fmt.Errorf("encode cost: %w", err)
	}
	if _, err := fmt.Fprintln(out, string(text)); err != nil {
		return fmt.Errorf("print cost: %w", err)
	}
	return nil
}

// measure runs a command and returns its cost. Its output is in the file.
func measure(ctx context.Context, file, program string, args ...string) (cost, error) {
	self, err := os.Executable()
	if err != nil {
		return cost{}, fmt.Errorf("find this program: %w", err)
	}
	command := exec.CommandContext(ctx, self, append([]string{Argument, file, program}, args...)...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return cost{}, fmt.Errorf("run %s: %w", program, err)
	}
	var c cost
	if err := json.Unmarshal(text, &c); err != nil {
		return cost{}, fmt.Errorf("parse cost %q: %w", text, err)
	}
	return c, nil
}
