// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrSkipped is the error of a measure that needs something that this machine does not have. The
// page keeps its earlier results.
var ErrSkipped = errors.New("skipped")

// Run is the run of one measure.
type Run struct {
	// Quick selects small sizes and few repetitions. The results are not comparable; they only
	// show that the measure works.
	Quick bool
	// Bin is the folder of Seamark's programs.
	Bin string
	// Dir is a temporary folder, removed when the measure ends.
	Dir string

	progress io.Writer
	started  time.Time
	cleanup  []func() error
}

// Do runs a measure. Programs and API servers that it started are stopped at the end.
func Do(ctx context.Context, m Measure, quick bool, bin string, progress io.Writer) (out Output, err error) {
	dir, err := os.MkdirTemp("", "seamark-bench-")
	if err != nil {
		return Output{}, fmt.Errorf("create folder: %w", err)
	}
	r := &Run{Quick: quick, Bin: bin, Dir: dir, progress: progress, started: time.Now()}
	r.OnEnd(func() error { return os.RemoveAll(dir) })
	// Watches end before the API server stops, which would wait for them.
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		err = errors.Join(err, r.End())
	}()
	out, err = m.Run(ctx, r)
	if err != nil {
		r.logTails()
		return Output{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	return out, m.Check(out)
}

// logTails prints the last lines of the programs' logs. A program may have ended on its own.
func (r *Run) logTails() {
	const lines = 10
	paths, _ := filepath.Glob(filepath.Join(r.Dir, "*", "log"))
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			all := strings.SplitAfter(string(text), "\n")
			r.Log("end of %s:\n%s", path, strings.Join(all[max(0, len(all)-lines):], ""))
		}
	}
}

// Nested returns a part of the run. What it starts is stopped by its End, before that of r.
func (r *Run) Nested() *Run {
	return &Run{Quick: r.Quick, Bin: r.Bin, Dir: r.Dir, progress: r.progress, started: r.started}
}

// End stops what the run or the part of it has started. Do calls it for the whole run.
func (r *Run) End() (err error) {
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		err = errors.Join(err, r.cleanup[i]())
	}
	return err
}

// OnEnd calls a function when the measure ends, in the opposite order of the calls of OnEnd.
func (r *Run) OnEnd(f func() error) { r.cleanup = append(r.cleanup, f) }

// Log prints progress with the time since the start of the measure.
func (r *Run) Log(format string, args ...any) {
	fmt.Fprintf(r.progress, "%7.1fs  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}

// Pick returns full, or quick in a quick run.
func Pick[T any](r *Run, full, quick T) T {
	if r.Quick {
		return quick
	}
	return full
}

// Program returns the path of a program of Seamark.
func (r *Run) Program(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(r.Bin, name))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find %s: %w: run `make build`", name, err)
	}
	return path, nil
}

// Each calls work for 0 to n-1, with limited concurrency.
func Each(ctx context.Context, n, limit int, work func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	return group.Wait() //nolint:wrapcheck // work has wrapped the error.
}

// patience is the timeout of Until.
const patience = 3 * time.Minute

// Until polls until the condition holds or three minutes have passed. The interval is part of
// the measurement's resolution and load.
func Until(ctx context.Context, what string, every time.Duration, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, every, patience, true, done); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// Idle waits.
func Idle(ctx context.Context, period time.Duration) error {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("idle: %w", ctx.Err())
	}
}
