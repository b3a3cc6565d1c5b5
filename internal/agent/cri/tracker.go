// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probeid"
)

// Callbacks are called by a Tracker, one at a time and from one goroutine.
type Callbacks struct {
	// OnChange is called when a container is first seen, has restarted, or has ended.
	OnChange func(Instance)
	// OnGone is called when the runtime has no instance of a container anymore.
	OnGone func(probeid.ContainerKey)
	// OnSynced is called once, after OnChange was called for all containers of the first list.
	OnSynced func()
}

// timing is the timing of a Tracker.
type timing struct {
	// poll is the interval between lists if the runtime has no event stream.
	poll time.Duration
	// resync is the interval between lists in addition to a stream, which may lose events.
	resync time.Duration
	// reopen is the delay before a stream that ended at once is opened again.
	reopen time.Duration
	// steady is the minimum duration of a connection or stream that counts as a success.
	steady time.Duration
	// retry and retryMax are the first and the longest delay after a failure.
	retry, retryMax time.Duration
}

// Tracker tracks the containers of all pods on the node. If the runtime has an event stream,
// it lists the containers once per connection and then follows the events. Otherwise it lists
// them once per second. In addition, it makes one call for each start and each end that it
// finds in a list. While the runtime is unreachable, nothing changes.
type Tracker struct {
	client    *Client
	wanted    func() bool
	callbacks Callbacks
	log       logr.Logger
	timing    timing

	known  instances
	synced bool
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
		},
		known: instances{},
	}
}

// Run tracks the containers until ctx ends, across restarts of the runtime. It always returns
// nil and may be called only once.
func (t *Tracker) Run(ctx context.Context) error {
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
			return nil //nolint:nilerr // the end of ctx is not an error
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
			return nil
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
// It returns why the connection ended, or nil to open another stream.
func (t *Tracker) session(ctx context.Context, connected func()) error {
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
	events := newEventQueue()
	reader.Go(func() { events.fill(stream.Recv) })

	listed, err := t.sync(ctx)
	if err != nil {
		return err
	}
	connected()
	ended, err := t.follow(ctx, events, listed)
	if err != nil {
		return err
	}
	return t.withoutStream(ctx, ended, time.Since(opened))
}

// follow applies events until the stream ends, and returns the error that ended it. err is an
// error of another call to the runtime. Events from before the last list are skipped.
func (t *Tracker) follow(ctx context.Context, events *eventQueue, listed time.Time) (ended, err error) {
	resync := time.NewTicker(t.timing.resync)
	defer resync.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-resync.C:
			if listed, err = t.sync(ctx); err != nil {
				return nil, err
			}
		case <-events.ready:
			batch, ended := events.take()
			for _, event := range batch {
				if event.GetCreatedAt() != 0 && event.GetCreatedAt() < listed.UnixNano() {
					continue
				}
				if err := t.apply(ctx, event); err != nil {
					return nil, err
				}
			}
			if ended != nil {
				return ended, nil
			}
		}
	}
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
// lost or the channel has a value.
func (t *Tracker) poll(ctx context.Context, until <-chan time.Time) error {
	ticker := time.NewTicker(t.timing.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-until:
			return nil
		case <-ticker.C:
			if !t.wanted() {
				continue
			}
			if _, err := t.sync(ctx); err != nil {
				return err
			}
		}
	}
}

// sync lists all containers, applies the changes, and returns the time of the request. On an
// error, nothing changes.
func (t *Tracker) sync(ctx context.Context) (time.Time, error) {
	requested := time.Now()
	list, err := t.client.list(ctx)
	if err != nil {
		return requested, err
	}
	current, unknown := newestInstances(list)
	var changed []orderedInstance
	for key, listed := range current {
		if t.known.knows(listed) {
			continue
		}
		details, err := t.client.status(ctx, listed.ID)
		if err != nil {
			return requested, err
		}
		if instance, ok := detailedInstanceOf(details); ok {
			changed = append(changed, instance)
		} else if details == nil {
			delete(current, key)
		}
	}
	for _, instance := range changed {
		t.put(instance)
	}
	for key := range t.known {
		if _, ok := current[key]; !ok && !unknown[key] {
			delete(t.known, key)
			t.callbacks.OnGone(key)
		}
	}
	if !t.synced {
		t.synced = true
		t.callbacks.OnSynced()
	}
	return requested, nil
}

// apply applies an event. The event contains the statuses of all containers of the pod. If it
// does not, or if they contradict the event, the status is requested from the runtime.
func (t *Tracker) apply(ctx context.Context, event *runtimeapi.ContainerEventResponse) error {
	id, kind := event.GetContainerId(), event.GetContainerEventType()
	consistent := false
	for _, container := range event.GetContainersStatuses() {
		if instance, ok := detailedInstanceOf(container); ok {
			t.put(instance)
			consistent = consistent || instance.ID == id && instance.Running == (kind == runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
		}
	}
	switch {
	case kind == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		if key, ok := t.known.remove(id); ok {
			t.callbacks.OnGone(key)
		}
		return nil
	case consistent, kind == runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, id == event.GetPodSandboxStatus().GetId():
		return nil
	}
	details, err := t.client.status(ctx, id)
	if err != nil {
		return err
	}
	if instance, ok := detailedInstanceOf(details); ok {
		t.put(instance)
	}
	return nil
}

// put records an instance and calls OnChange if it is new or has changed.
func (t *Tracker) put(instance orderedInstance) {
	if t.known.put(instance) {
		t.callbacks.OnChange(instance.Instance)
	}
}
