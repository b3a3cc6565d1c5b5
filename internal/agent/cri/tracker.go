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

// Callbacks are what a Tracker tells, all from one goroutine and one after the other.
type Callbacks struct {
	// OnChange is called for each container that is new, has started anew, or has ended.
	OnChange func(Container)
	// OnGone is called for each container of which the runtime knows no start any more.
	OnGone func(probeid.Container)
	// OnSynced is called once, when the first complete list has been told.
	OnSynced func()
}

// timing is how often a Tracker does what.
type timing struct {
	// poll is the time between lists where the runtime has no stream of events.
	poll time.Duration
	// resync is the time between lists beside a stream, for events that got lost.
	resync time.Duration
	// reopen is the time after which a stream that ended at once is tried again.
	reopen time.Duration
	// steady is how long a connection or a stream lasts that is no failed try.
	steady time.Duration
	// retry is the first and the longest wait after a failure.
	retry, retryMax time.Duration
}

// Tracker knows the containers of all pods on the node. It follows the runtime's events
// where there is a stream of them, after one list at each connection, and asks for one
// list a second where there is none. Beyond that it makes one call for each start that a
// list brings and one for each end. A runtime that cannot be reached changes nothing.
type Tracker struct {
	client    *Client
	wanted    func() bool
	callbacks Callbacks
	log       logr.Logger
	timing    timing

	known  table
	synced bool
}

// NewTracker returns a tracker of the containers that the client's runtime has. Without a
// stream of events, containers are listed only while wanted returns true; it is called
// from the tracker's goroutine. All callbacks must be set. The log tells when the runtime
// is lost and found.
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
		known: table{},
	}
}

// Run follows the runtime until ctx ends, through all of its restarts. It returns nil,
// and may be called once.
func (t *Tracker) Run(ctx context.Context) error {
	lost := false
	found := func() {
		if lost {
			t.log.Info("Container runtime found again")
		}
		lost = false
	}
	retry := t.backoff()
	for {
		start := time.Now()
		err := t.session(ctx, found)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is no error, and err follows from it
		}
		if err != nil && !lost {
			lost = true
			t.log.Info("Container runtime lost, containers are taken to be as they were", "reason", err.Error())
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

// backoff returns the waits between tries, from the first.
func (t *Tracker) backoff() wait.Backoff {
	const doublings = 32
	return wait.Backoff{Duration: t.timing.retry, Factor: 2, Jitter: 0.1, Steps: doublings, Cap: t.timing.retryMax}
}

// session follows the runtime over one connection, and calls synced once it has a list.
// It returns why the connection is of no use any more, nil to open another stream.
func (t *Tracker) session(ctx context.Context, synced func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()

	// The stream is opened before the list is read: what changes between goes into it.
	opened := time.Now()
	stream, err := t.client.events(ctx)
	if err != nil {
		return err
	}
	events := newInbox()
	reader.Go(func() { events.fill(stream.Recv) })

	listed, err := t.sync(ctx)
	if err != nil {
		return err
	}
	synced()
	ended, err := t.follow(ctx, events, listed)
	if err != nil {
		return err
	}
	return t.withoutStream(ctx, ended, time.Since(opened))
}

// follow applies events until the stream ends, and returns what ended it. The error says
// that the runtime could not be asked. Events from before the last list are in that.
func (t *Tracker) follow(ctx context.Context, events *inbox, listed time.Time) (ended, err error) {
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

// withoutStream goes on after a stream has ended. A runtime that has no stream is asked
// for lists until it is lost, and one that ends its streams at once, as CRI-O does where
// events are switched off, until the next try. All else is a lost connection.
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

// poll reads a list at each interval in which containers are wanted, until the runtime is
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

// sync brings the table up to a complete list and returns when that was asked for. On an
// error nothing is changed.
func (t *Tracker) sync(ctx context.Context) (time.Time, error) {
	asked := time.Now()
	list, err := t.client.list(ctx)
	if err != nil {
		return asked, err
	}
	current, unclear := newest(list)
	var learned []start
	for key, listed := range current {
		if t.known.knows(listed) {
			continue
		}
		details, err := t.client.status(ctx, listed.ID)
		if err != nil {
			return asked, err
		}
		if s, ok := detailedOf(details); ok {
			learned = append(learned, s)
		} else if details == nil {
			delete(current, key)
		}
	}
	for _, s := range learned {
		t.put(s)
	}
	for key := range t.known {
		if _, ok := current[key]; !ok && !unclear[key] {
			delete(t.known, key)
			t.callbacks.OnGone(key)
		}
	}
	if !t.synced {
		t.synced = true
		t.callbacks.OnSynced()
	}
	return asked, nil
}

// apply brings the table up to an event. The runtime sends the statuses of all containers
// of the pod with it; where it does not, or they contradict the event, it is asked.
func (t *Tracker) apply(ctx context.Context, event *runtimeapi.ContainerEventResponse) error {
	id, kind := event.GetContainerId(), event.GetContainerEventType()
	told := false
	for _, container := range event.GetContainersStatuses() {
		if s, ok := detailedOf(container); ok {
			t.put(s)
			told = told || s.ID == id && s.Running == (kind == runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
		}
	}
	switch {
	case kind == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		if key, ok := t.known.remove(id); ok {
			t.callbacks.OnGone(key)
		}
		return nil
	case told, kind == runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, id == event.GetPodSandboxStatus().GetId():
		return nil
	}
	details, err := t.client.status(ctx, id)
	if err != nil {
		return err
	}
	if s, ok := detailedOf(details); ok {
		t.put(s)
	}
	return nil
}

// put takes note of a start and tells it if it is news.
func (t *Tracker) put(s start) {
	if t.known.put(s) {
		t.callbacks.OnChange(s.Container)
	}
}
