// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"fmt"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// capacity is the number of events that the runtime keeps for subscribers.
const capacity = 1000

// FaultFunc is called before each call with the method name without its service, and with the
// request, which is nil for a stream. An error fails the call. The function may block until
// ctx ends, as a runtime that hangs.
type FaultFunc func(ctx context.Context, method string, request any) error

// subscriber is an open event stream.
type subscriber struct {
	events chan *runtimeapi.ContainerEventResponse
	broken chan struct{}
}

// OnCall sets a function that can delay and fail calls, or removes it if it is nil.
func (r *Runtime) OnCall(fault FaultFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// Replace changes the kind of event support, and with it the name and version of the runtime,
// as an upgrade does. Open streams are not affected.
func (r *Runtime) Replace(events Events) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = events
}

// Silence stops or resumes sending events. Streams stay open.
func (r *Runtime) Silence(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
}

// Break ends all open event streams with an error.
func (r *Runtime) Break() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.streams {
		close(s.broken)
		delete(r.streams, s)
	}
}

// Streams returns the number of open event streams.
func (r *Runtime) Streams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

// Send sends an event unchanged, as if the runtime had sent it.
func (r *Runtime) Send(event *runtimeapi.ContainerEventResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(event)
}

// called counts a call and returns the error of its fault.
func (r *Runtime) called(ctx context.Context, method string, request any) error {
	r.mu.Lock()
	r.calls[path.Base(method)]++
	fault := r.fault
	r.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx, path.Base(method), request)
}

func (r *Runtime) send(event *runtimeapi.ContainerEventResponse) {
	if r.events == Shared {
		select {
		case r.shared <- event:
		default: // The queue is full, or the runtime is stopped.
		}
		return
	}
	for s := range r.streams {
		s.events <- event
	}
}

// GetContainerEvents implements the CRI.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, server grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	r.mu.Lock()
	events := r.events
	s := &subscriber{events: make(chan *runtimeapi.ContainerEventResponse, capacity), broken: make(chan struct{})}
	// The end of a call is noticed only by subscribers of their own events.
	ended := server.Context().Done()
	if events == Shared {
		s.events, ended = r.shared, nil
	}
	if events == Streamed || events == Shared {
		r.streams[s] = struct{}{}
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.streams, s)
	}()
	switch events {
	case Unimplemented:
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
	case Ended:
		return nil
	}
	for {
		select {
		case <-ended:
			return server.Context().Err()
		case <-s.broken:
			return status.Error(codes.Internal, "stream broken")
		case event, open := <-s.events:
			if !open {
				return status.Error(codes.Unavailable, "runtime is stopping")
			}
			if err := server.Send(event); err != nil {
				return fmt.Errorf("send event: %w", err)
			}
		}
	}
}
