// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/test/expect"
)

// Clients is the number of concurrent requests that act as users, kubelets and agents.
const Clients = 16

// Bench is the run of one measure, or of a part of it.
type Bench struct {
	*testing.T
	// Quick selects small sizes and few repetitions. The results are not comparable; they only
	// show that the measure works.
	Quick bool
}

// Pick returns full, or quick in a quick run.
func Pick[T any](b *Bench, full, quick T) T {
	if b.Quick {
		return quick
	}
	return full
}

// Must ends the measure if there is an error.
func (b *Bench) Must(err error) {
	b.Helper()
	expect.NoError(b, err)
}

// Part runs a part of the measure. What it has started is stopped when it returns. The measure ends
// if the part fails.
func (b *Bench) Part(name string, do func(*Bench)) {
	b.Helper()
	if !b.Run(name, func(t *testing.T) { do(&Bench{T: t, Quick: b.Quick}) }) {
		b.FailNow()
	}
}

// Each calls work for 0 to n-1, with limited concurrency, and ends the measure after an error.
func (b *Bench) Each(n, limit int, work func(ctx context.Context, i int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	b.Must(group.Wait())
}

// Until polls until the condition is true, or 15 minutes have passed, 3 with small sizes: go test would end the run after 10
// without the logs of the programs. The interval is part of the measurement's resolution and load.
func (b *Bench) Until(what string, every time.Duration, done func(context.Context) (bool, error)) {
	b.Helper()
	patience := Pick(b, 15*time.Minute, 3*time.Minute)
	expect.NoErrorf(b, wait.PollUntilContextTimeout(b.Context(), every, patience, true, done), "wait until %s", what)
}

// Idle waits.
func (b *Bench) Idle(period time.Duration) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
	}
}

// Self returns a command that runs this program with the arguments, for what must be measured in a
// process of its own. Its standard error is that of this process.
func (b *Bench) Self(args ...string) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	b.Must(err)
	command := exec.CommandContext(b.Context(), self, args...) //nolint:gosec // It is this program.
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

// Answer runs a command that prints JSON.
func Answer[T any](command *exec.Cmd) (T, error) {
	var value T
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &value)
	}
	return value, err //nolint:wrapcheck // The caller names the command.
}
