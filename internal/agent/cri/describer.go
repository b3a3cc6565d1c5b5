// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// concurrentStatuses is how many status requests may run at a time, without those that the
// runtime does not answer in time.
const concurrentStatuses = 16

var (
	// errNoContainer is the answer if the runtime has no such container.
	errNoContainer = errors.New("container runtime has no such container")
	// errSlow is a preliminary answer: the runtime has not answered in time.
	errSlow = errors.New("container runtime does not answer")
)

// answer is the status of a container, or the reason why the runtime has not described it.
type answer struct {
	id     string
	status *runtimeapi.ContainerStatus
	err    error
}

// describer requests the statuses of containers over one connection, each in its own
// goroutine, so that a container that the runtime cannot describe does not delay the others.
// It repeats a failed request with increasing delays. Its methods are called from one
// goroutine, which also receives the answers.
type describer struct {
	client  *Client
	timing  timing
	slots   *semaphore.Weighted
	pending map[string]*request
	answers chan answer
	running sync.WaitGroup
}

// request is a request that has not succeeded yet.
type request struct {
	cancel context.CancelFunc
	// answered reports whether there was an answer, even if it was an error.
	answered bool
}

// newDescriber returns a describer without requests.
func newDescriber(client *Client, timing timing) *describer {
	return &describer{
		client: client, timing: timing,
		slots:   semaphore.NewWeighted(concurrentStatuses),
		pending: map[string]*request{},
		answers: make(chan answer),
	}
}

// request requests the status of a container until there is one or ctx ends, unless it does
// so already.
func (d *describer) request(ctx context.Context, id string) {
	if _, found := d.pending[id]; found {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	d.pending[id] = &request{cancel: cancel}
	d.running.Go(func() { d.describe(ctx, id) })
}

// drop ends the request for a container, if there is one.
func (d *describer) drop(id string) {
	if r, found := d.pending[id]; found {
		r.cancel()
		delete(d.pending, id)
	}
}

// receive records an answer. It returns false if the answer no longer matters.
func (d *describer) receive(a answer) bool {
	r, found := d.pending[a.id]
	if !found {
		return false
	}
	r.answered = true
	if a.err == nil {
		d.drop(a.id)
	}
	return true
}

// waiting reports whether there is a request without any answer.
func (d *describer) waiting() bool {
	for _, r := range d.pending {
		if !r.answered {
			return true
		}
	}
	return false
}

// describe requests the status of a container until there is one or ctx ends.
func (d *describer) describe(ctx context.Context, id string) {
	const doublings = 32
	retry := wait.Backoff{Duration: d.timing.redescribe, Factor: 2, Jitter: 0.1, Steps: doublings, Cap: d.timing.redescribeMax}
	for {
		status, err := d.attempt(ctx, id)
		if !d.post(ctx, answer{id: id, status: status, err: err}) || err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Step()):
		}
	}
}

// attempt requests the status of a container once. If the runtime does not answer in time,
// attempt posts errSlow and frees its slot before it continues to wait.
func (d *describer) attempt(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	if err := d.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	release := sync.OnceFunc(func() { d.slots.Release(1) })
	defer release()
	slow := time.AfterFunc(d.timing.patience, func() {
		release()
		d.post(ctx, answer{id: id, err: errSlow})
	})
	defer slow.Stop()
	status, err := d.client.status(ctx, id)
	if err == nil && status == nil {
		err = errNoContainer
	}
	return status, err
}

// post delivers an answer. It returns false if ctx ended first.
func (d *describer) post(ctx context.Context, a answer) bool {
	select {
	case <-ctx.Done():
		return false
	case d.answers <- a:
		return true
	}
}
