// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/inbox"
)

// Callbacks are called by a Tracker, one at a time and from one goroutine.
type Callbacks struct {
	// OnChange is called when a container is first seen, has restarted, or has ended.
	OnChange func(Instance)
	// OnGone is called when the runtime has no instance of a container anymore.
	OnGone func(identity.ContainerKey)
	// OnUnknown is called when the runtime has an instance of a container that it cannot
	// describe: whether the container runs, and since when, is unknown until OnChange or OnGone
	// is called for it.
	OnUnknown func(identity.ContainerKey)
	// OnSynced is called after OnChange or OnUnknown was called for all containers of the first
	// list, and of the first list after OnStale.
	OnSynced func()
	// OnStale is called when containers are not listed any more, because none are wanted: what is
	// known of them becomes outdated until OnSynced is called.
	OnStale func()
}

type timing struct {
	// poll is the interval between lists if the tracker does not use an event stream.
	poll time.Duration
	// resync is the interval between lists in addition to a stream, which may lose events.
	resync time.Duration
	// reopen is the delay before a stream that ended at once is opened again, and the interval
	// at which the version of a runtime without a stream is checked.
	reopen time.Duration
	// steady is the minimum duration of a connection or stream that counts as a success.
	steady time.Duration
	// retry and retryMax are the first and the longest delay after a failure.
	retry, retryMax time.Duration
	// patience is how long the runtime may take to describe a container.
	patience time.Duration
	// redescribe and redescribeMax are the first and the longest delay between two requests for
	// the status of a container that the runtime cannot describe.
	redescribe, redescribeMax time.Duration
}

// Tracker tracks the containers of all pods on the node. If the runtime sends its events to all
// subscribers, the tracker lists the containers once per connection and then follows the
// events. Otherwise it lists them once per second. In addition, it makes one call for each
// start and each end that it finds in a list. While the runtime is unreachable, nothing
// changes.
type Tracker struct {
	client    *Client
	wanted    func() bool
	callbacks Callbacks
	log       logr.Logger
	timing    timing

	known instances
	// unknown contains the containers that the runtime cannot describe, and failures how often
	// it has failed to describe an instance, by ID.
	unknown  map[identity.ContainerKey]bool
	failures map[string]int
	// undescribed is the size of unknown, for other goroutines.
	undescribed atomic.Int64
	// runtime is the runtime of the current connection.
	runtime Runtime
	synced  bool

	// describer belongs to the current connection.
	describer *describer
	// owners contains the containers of pending requests, by ID. A request for an event has none.
	owners map[string]identity.ContainerKey
}

// NewTracker returns a tracker of the containers in the client's runtime. Without an event
// stream, it lists containers only while wanted returns true; wanted is called from the
// goroutine of the tracker. All callbacks must be set. The tracker logs when the connection
// to the runtime is lost and restored.
func NewTracker(client *Client, wanted func() bool, callbacks Callbacks, log logr.Logger) *Tracker {
	return &Tracker{
		client:    client,
		wanted:    wanted,
		callbacks: callbacks,
		log:       log,
		timing: timing{
			poll: time.Second, resync: time.Minute, reopen: time.Minute, steady: 10 * time.Second,
			retry: 100 * time.Millisecond, retryMax: time.Second,
			patience: time.Second, redescribe: time.Second, redescribeMax: time.Minute,
		},
		known: instances{}, unknown: map[identity.ContainerKey]bool{}, failures: map[string]int{},
	}
}

// Undescribed returns the number of containers that the runtime cannot describe. It is safe
// for concurrent use.
func (t *Tracker) Undescribed() int { return int(t.undescribed.Load()) }

// Run tracks the containers until ctx ends, across restarts of the runtime. It may be called only
// once.
func (t *Tracker) Run(ctx context.Context) {
	lost := false
	connected := func() {
		if lost {
			t.log.Info("Reconnected to container runtime")
		}
		lost = false
	}
	retry := t.backoff()
	for {
		start := time.Now()
		err := t.session(ctx, connected)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !lost {
			lost = true
			t.log.Info("Lost connection to container runtime, keeping last known containers", "reason", err.Error())
		}
		if time.Since(start) > t.timing.steady {
			retry = t.backoff()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Step()):
		}
	}
}

// backoff returns the delays between retries.
func (t *Tracker) backoff() wait.Backoff {
	const doublings = 32
	return wait.Backoff{Duration: t.timing.retry, Factor: 2, Jitter: 0.1, Steps: doublings, Cap: t.timing.retryMax}
}

// session tracks the containers over one connection and calls connected after the first list.
// It returns why the connection ended, or nil to start another session.
func (t *Tracker) session(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancel(ctx)
	t.describer, t.owners = newDescriber(t.client, t.timing), map[string]identity.ContainerKey{}
	defer t.describer.running.Wait()
	defer cancel()

	// The runtime may have been upgraded since the last connection.
	runtime, err := t.client.Version(ctx)
	if err != nil {
		return err
	}
	if runtime != t.runtime {
		t.log.Info("Tracking containers", "runtime", runtime.String(), "eventStream", runtime.broadcasts())
		t.runtime = runtime
	}
	if !runtime.broadcasts() {
		if err := t.sync(ctx); err != nil {
			return err
		}
		connected()
		return t.poll(ctx, nil)
	}
	return t.stream(ctx, connected)
}

// stream tracks the containers with the runtime's event stream. Events from before the list change
// nothing that the list has found: they are older, and their times are not compared with the clock,
// which may be set.
func (t *Tracker) stream(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()

	// The stream is opened before the list, so that it contains all changes after the list.
	opened := time.Now()
	stream, err := t.client.events(ctx)
	if err != nil {
		return err
	}
	// The inbox never blocks the stream, because containerd waits for its slowest reader before it
	// starts another container.
	received := inbox.New(time.Now)
	var ended error
	reader.Go(func() {
		for failed := false; !failed; {
			event, err := stream.Recv()
			failed = err != nil
			received.Post(func(time.Time) {
				if failed {
					ended = err
				} else {
					t.apply(ctx, event)
				}
			})
		}
	})

	if err := t.sync(ctx); err != nil {
		return err
	}
	connected()
	resync := time.NewTicker(t.timing.resync)
	defer resync.Stop()
	for ended == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resync.C:
			if err := t.sync(ctx); err != nil {
				return err
			}
		case a := <-t.describer.answers:
			t.receive(a)
		case <-received.Wake():
			received.Deliver()
		}
	}
	return t.withoutStream(ctx, ended, time.Since(opened))
}

// withoutStream continues after a stream has ended. If the runtime has no event stream, the
// containers are polled until the connection is lost. If the runtime ends its streams at once,
// as CRI-O does if events are disabled, they are polled until the next attempt to open a
// stream. In all other cases the connection is lost.
func (t *Tracker) withoutStream(ctx context.Context, ended error, lasted time.Duration) error {
	switch code := status.Code(ended); {
	case code == codes.Unimplemented:
		return t.poll(ctx, nil)
	case code == codes.Unavailable, lasted > t.timing.steady:
		return ended
	default:
		reopen := time.NewTimer(t.timing.reopen)
		defer reopen.Stop()
		return t.poll(ctx, reopen.C)
	}
}

// poll lists the containers at each interval, if they are wanted, until the connection is
// lost, the runtime was replaced, or the channel has a value.
func (t *Tracker) poll(ctx context.Context, until <-chan time.Time) error {
	ticker, check := time.NewTicker(t.timing.poll), time.NewTicker(t.timing.reopen)
	defer ticker.Stop()
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until:
			return nil
		case a := <-t.describer.answers:
			t.receive(a)
		case <-check.C:
			if runtime, err := t.client.Version(ctx); err != nil || runtime != t.runtime {
				return err
			}
		case <-ticker.C:
			if !t.wanted() {
				t.stale()
				continue
			}
			if err := t.sync(ctx); err != nil {
				return err
			}
		}
	}
}

// stale reports that containers are not listed any more. The next list makes them known again.
func (t *Tracker) stale() {
	if t.synced {
		t.synced = false
		t.callbacks.OnStale()
	}
}
