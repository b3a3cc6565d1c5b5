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
//
// One goroutine, the loop, owns all pods. What happens elsewhere, in the worker, in
// processes and in hooks, is posted to it.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/local/address"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/manifest"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/plan"
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
	// Observe is told of every change, in order and from one goroutine. It may call
	// Snapshot and Kill. It must not block: everything waits for it. Nil tells nobody.
	Observe func(Change)
	// Executable is the program that is started once more as the reaper. It must call
	// Reaper first of all. Empty means the running program.
	Executable string
}

// Runner runs pods as local processes.
type Runner struct {
	options  Options
	markers  []*plan.Marker
	warnings []string
	mail     *mailbox

	// mu guards what the loop owns, for Snapshot. The loop holds it while it works.
	mu     sync.Mutex
	pods   []*pod
	killed bool
}

// New checks the options. It starts nothing and reserves nothing. The error says what the
// objects ask for that can't be had.
func New(options Options) (*Runner, error) {
	if len(options.Objects.Pods) == 0 {
		return nil, errors.New("no pods: give a Pod, a Deployment or a StatefulSet with replicas")
	}
	if options.Observe == nil {
		options.Observe = func(Change) {}
	}
	if options.SharedAddress {
		if err := collisions(options.Objects.Pods); err != nil {
			return nil, err
		}
	}
	r := &Runner{options: options, mail: newMailbox()}
	for i := range options.Objects.Markers {
		marker, err := plan.Compile(&options.Objects.Markers[i])
		if err != nil {
			return nil, fmt.Errorf("PodProbeMarker %s: %w", options.Objects.Markers[i].Name, err)
		}
		r.markers = append(r.markers, marker)
	}
	node, crashLoop := nodeName(), lifecycle.CrashLoop{Initial: options.CrashLoopInitial, Max: options.CrashLoopMax}
	for _, object := range options.Objects.Pods {
		r.pods = append(r.pods, newPod(object, node, crashLoop))
	}
	r.warnings = warnings(r.markers, r.pods)
	return r, nil
}

// nodeName returns what the pods take for the name of their node.
func nodeName() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "local"
}

// Warnings returns what is wrong with the markers though it is valid: markers that match
// no pod, probes that can't be run in a pod, and marks that two probes claim. A cluster
// tells them in the markers' status.
func (r *Runner) Warnings() []string { return r.warnings }

// Run runs the pods until ctx ends, and then stops them as deleted pods are stopped: with
// preStop hooks, SIGTERM, their grace period, SIGKILL. When it returns, no process that it
// started is left. It is called once, and returns an error where the run could not begin,
// or where its reaper has ended and nothing holds the processes any more.
func (r *Runner) Run(ctx context.Context) (err error) {
	lease, err := r.lease()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close()) }()
	keeper, err := process.NewKeeper(r.options.Executable)
	if err != nil {
		return fmt.Errorf("hold the processes of the run: %w", err)
	}
	defer func() { err = errors.Join(err, keeper.Close()) }()
	l, err := newLoop(r, keeper, lease)
	if err != nil {
		return err
	}
	return l.run(ctx)
}

// lease takes the pods' addresses.
func (r *Runner) lease() (*address.Lease, error) {
	if r.options.SharedAddress {
		return &address.Lease{}, nil
	}
	lease, err := address.Take(len(r.pods))
	if errors.Is(err, address.ErrOnlyOne) {
		return nil, fmt.Errorf("give each pod an address of its own: %w: ask for a shared address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("give each pod an address of its own: %w", err)
	}
	return lease, nil
}

// Kill ends all processes at once, without grace, and the run with them. It may be called
// from any goroutine, at any time, and more than once.
func (r *Runner) Kill() {
	r.mail.post(func(l *loop, now time.Time) {
		r.killed = true
		l.stop(now)
		l.killAll()
	})
}

// Snapshot returns the pods as they stand, in the order of the manifests. It is safe for
// concurrent use, before Run, during it and after it.
func (r *Runner) Snapshot() []PodView {
	r.mu.Lock()
	defer r.mu.Unlock()
	views := make([]PodView, 0, len(r.pods))
	for _, p := range r.pods {
		views = append(views, p.view(r.markers))
	}
	return views
}

// Reaper does the work of the reaper and exits, where the program was started as one; else
// it returns at once. Every program that calls Run must call it before anything else.
func Reaper() { process.Reaper() }
