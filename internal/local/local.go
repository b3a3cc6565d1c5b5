// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs pods as local processes and probes them as a cluster does. Each
// container is a process group. No process outlives a run, even if the run is killed; package
// process describes the limits of this.
//
// It takes the place of the kubelet (package lifecycle), of the container runtime (package
// process), and of the API server, in which nothing else changes during a run. The agent and the
// manager are not emulated: their packages plan and run the probes, and decide on reports, events and
// marks. docs/local.md describes which fields of pods a run uses. It runs without the others, which
// manifest.Objects.Unsupported names. Isolation of processes, controllers, Services and DNS are
// intentionally not emulated.
//
// One goroutine, the loop, owns the state. The worker, processes and hooks run in other
// goroutines and post their events to the loop's inbox.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/address"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/inbox"
)

// loopback is the address of the machine, and of all pods that share an address.
const loopback = "127.0.0.1"

// Options configure a Runner.
type Options struct {
	// Objects are the pods and markers, and the objects that the pods refer to.
	Objects manifest.Objects
	// SharedAddress gives every pod the address 127.0.0.1 instead of its own loopback
	// address, for systems that have no other. New rejects pods that use the same port.
	SharedAddress bool
	// CrashLoopInitial and CrashLoopMax are the first and the longest delay before a
	// container that keeps exiting restarts. Zero means the kubelet's 10 seconds and
	// 5 minutes.
	CrashLoopInitial, CrashLoopMax time.Duration
	// Version is the version in the user agent of network probes, kube-probe/<version>.
	Version string
	// Observe is called with every change, in order and from one goroutine. It may call
	// Snapshot and Kill. It must not block, because the run waits for it. It may be nil.
	Observe func(Change)
	// Executable is the program to start as the reaper. It must call Reaper before
	// anything else. Empty means the running program.
	Executable string
}

// Runner runs pods as local processes.
type Runner struct {
	options  Options
	markers  []*plan.Marker
	warnings []string
	inbox    *inbox.Inbox
	// loop is the run. It is nil before Run.
	loop *loop

	// mu guards the state of the pods. The loop holds it while it handles events.
	mu sync.Mutex
	// pods are in the order of the manifests.
	pods []*pod
}

// New validates the options. It does not start or reserve anything.
func New(options Options) (*Runner, error) {
	if len(options.Objects.Pods) == 0 {
		return nil, errors.New("no pods: specify a Pod, or a workload with replicas")
	}
	if options.Observe == nil {
		options.Observe = func(Change) {}
	}
	if options.SharedAddress {
		if err := portConflicts(options.Objects.Pods); err != nil {
			return nil, err
		}
	}
	options.Objects.Markers = slices.SortedFunc(slices.Values(options.Objects.Markers), func(a, b v1alpha1.PodProbeMarker) int {
		return strings.Compare(a.Name, b.Name)
	})
	r := &Runner{options: options, inbox: inbox.New(time.Now)}
	for i := range options.Objects.Markers {
		marker, err := plan.Compile(&options.Objects.Markers[i])
		if err != nil {
			return nil, fmt.Errorf("PodProbeMarker %s: %w", options.Objects.Markers[i].Name, err)
		}
		r.markers = append(r.markers, marker)
	}
	crashLoop := lifecycle.CrashLoop{Initial: options.CrashLoopInitial, Max: options.CrashLoopMax}
	for _, object := range options.Objects.Pods {
		r.pods = append(r.pods, newPod(object, nodeName(), crashLoop))
	}
	r.warnings = append(slices.Clone(options.Objects.Warnings()), warnings(&r.options.Objects, r.markers, r.pods)...)
	return r, nil
}

func nodeName() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "local"
}

// Warnings returns those of the objects, and problems of valid markers: markers that match no pod, probes that can't
// run in a pod, and marks that two probes set. In a cluster they are in the markers'
// status.
func (r *Runner) Warnings() []string { return r.warnings }

// Run runs the pods until ctx ends. Then it stops them as deleted pods are stopped: with
// preStop hooks, SIGTERM, their grace period and SIGKILL. When it returns, all processes
// that it started have ended. It must be called only once. It returns an error if the run
// could not start, or if the reaper exited.
func (r *Runner) Run(ctx context.Context) (err error) {
	lease, err := r.lease()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Close()) }()
	keeper, err := process.NewKeeper(r.options.Executable)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keeper.Close()) }()
	if r.loop, err = newLoop(r, keeper, lease); err != nil {
		return err
	}
	return r.loop.run(ctx)
}

// lease leases the pods' addresses.
func (r *Runner) lease() (*address.Lease, error) {
	if r.options.SharedAddress {
		return &address.Lease{}, nil
	}
	lease, err := address.Take(len(r.pods))
	if errors.Is(err, address.ErrOnlyOne) {
		err = fmt.Errorf("%w: use a shared address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("lease an address for each pod: %w", err)
	}
	return lease, nil
}

// Kill kills all processes without their grace periods, and ends the run. It is safe for
// concurrent use and can be called at any time, more than once.
func (r *Runner) Kill() {
	r.inbox.Post(func(now time.Time) { r.loop.kill(now) })
}

// Snapshot returns the current state of the pods, in the order of the manifests. It is safe
// for concurrent use, before, during and after Run.
func (r *Runner) Snapshot() []PodView {
	r.mu.Lock()
	defer r.mu.Unlock()
	views := make([]PodView, 0, len(r.pods))
	for _, p := range r.pods {
		views = append(views, p.view(r.options.Objects.Markers))
	}
	return views
}

// Reaper runs the reaper and exits if the program was started as one. Otherwise it returns
// at once. Every program that calls Run must call it before anything else.
func Reaper() { process.Reaper() }
