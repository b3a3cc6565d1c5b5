// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package critest is a container runtime for tests: the part of the CRI that the agent
// uses, over a real socket, with containers that are entries in a map.
package critest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probeid"
)

// Events is what a runtime does when asked for a stream of events.
type Events int

// The kinds of runtimes.
const (
	// Streamed sends events.
	Streamed Events = iota
	// Unimplemented has no such method, as containerd 1.6.
	Unimplemented
	// Ended ends each stream at once, as CRI-O with events switched off.
	Ended
)

// Exec answers a command.
type Exec func(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)

// Runtime is a container runtime. Its methods may be called from many goroutines.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	t      *testing.T
	socket string
	events Events

	mu         sync.Mutex
	server     *grpc.Server
	listener   net.Listener
	exec       Exec
	containers map[string]*runtimeapi.ContainerStatus
	streams    map[chan *runtimeapi.ContainerEventResponse]struct{}
	calls      map[string]int
	made       int
	silent     bool
}

// New starts a runtime that runs until the test ends.
func New(t *testing.T, events Events) *Runtime {
	t.Helper()
	// The folder of the test's name may be too long for a socket.
	folder, err := os.MkdirTemp("", "cri")
	if err != nil {
		t.Fatalf("make a folder for the socket: %v", err)
	}
	r := &Runtime{
		t: t, socket: filepath.Join(folder, "cri.sock"), events: events,
		containers: map[string]*runtimeapi.ContainerStatus{},
		streams:    map[chan *runtimeapi.ContainerEventResponse]struct{}{},
		calls:      map[string]int{},
	}
	r.Start()
	t.Cleanup(func() {
		r.Stop()
		_ = os.RemoveAll(folder)
	})
	return r
}

// Socket is the path of the runtime's socket.
func (r *Runtime) Socket() string { return r.socket }

// Start serves the socket again after Stop.
func (r *Runtime) Start() {
	r.t.Helper()
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		r.t.Fatalf("listen on %s: %v", r.socket, err)
	}
	server := grpc.NewServer(
		grpc.MaxSendMsgSize(64<<20),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			r.count(info.FullMethod)
			return handle(ctx, request)
		}),
		grpc.StreamInterceptor(func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			r.count(info.FullMethod)
			return handle(service, stream)
		}),
	)
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	r.mu.Lock()
	r.server, r.listener = server, listener
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Stop ends the server and all its calls, as a runtime that is killed. Containers go on.
func (r *Runtime) Stop() {
	r.mu.Lock()
	server, listener := r.server, r.listener
	r.mu.Unlock()
	server.Stop()
	// A server that had no time to begin has not closed it.
	_ = listener.Close()
}

// Calls returns how often each method was called since the start.
func (r *Runtime) Calls() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

// OnExec sets what answers commands. Without it they succeed and say nothing.
func (r *Runtime) OnExec(exec Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = exec
}

// Silence has the runtime send no events, or send them again.
func (r *Runtime) Silence(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
}

// Streams returns how many streams of events are open.
func (r *Runtime) Streams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

// Create makes a container and returns its ID.
func (r *Runtime) Create(c probeid.Container, attempt uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	id := fmt.Sprintf("c%d", r.made)
	r.containers[id] = &runtimeapi.ContainerStatus{
		Id:        id,
		Metadata:  &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: attempt},
		CreatedAt: time.Now().UnixNano(),
		Labels: map[string]string{
			"io.kubernetes.pod.uid":        string(c.PodUID),
			"io.kubernetes.container.name": c.Name,
		},
	}
	r.publish(id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return id
}

// Run starts a container at the given time.
func (r *Runtime) Run(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[id].State = runtimeapi.ContainerState_CONTAINER_RUNNING
	r.containers[id].StartedAt = at.UnixNano()
	r.publish(id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
}

// Exit ends a container.
func (r *Runtime) Exit(id string, code int32, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[id].State = runtimeapi.ContainerState_CONTAINER_EXITED
	r.containers[id].ExitCode = code
	r.containers[id].Reason = reason
	r.publish(id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// Remove takes a container away.
func (r *Runtime) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := r.containers[id]
	delete(r.containers, id)
	r.publishAs(id, gone, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
}

// Edit changes what the runtime says of a container, without an event.
func (r *Runtime) Edit(id string, edit func(*runtimeapi.ContainerStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(r.containers[id])
}

// Send sends an event as it is to all streams.
func (r *Runtime) Send(event *runtimeapi.ContainerEventResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(event)
}

func (r *Runtime) count(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[path.Base(method)]++
}

func (r *Runtime) publish(id string, kind runtimeapi.ContainerEventType) {
	r.publishAs(id, r.containers[id], kind)
}

// publishAs sends an event with the statuses of the pod's containers, as runtimes do.
func (r *Runtime) publishAs(id string, container *runtimeapi.ContainerStatus, kind runtimeapi.ContainerEventType) {
	if r.silent {
		return
	}
	pod := container.GetLabels()["io.kubernetes.pod.uid"]
	event := &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(),
		PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "sandbox-" + pod},
	}
	for _, other := range r.sorted() {
		if other.GetLabels()["io.kubernetes.pod.uid"] == pod {
			event.ContainersStatuses = append(event.ContainersStatuses, clone(other))
		}
	}
	r.send(event)
}

func (r *Runtime) send(event *runtimeapi.ContainerEventResponse) {
	for stream := range r.streams {
		stream <- event
	}
}

// sorted returns the containers in the order of their IDs.
func (r *Runtime) sorted() []*runtimeapi.ContainerStatus {
	out := make([]*runtimeapi.ContainerStatus, 0, len(r.containers))
	for _, id := range slices.Sorted(maps.Keys(r.containers)) {
		out = append(out, r.containers[id])
	}
	return out
}

// clone copies what edits may change.
func clone(c *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		Id: c.GetId(), Metadata: c.GetMetadata(), State: c.GetState(),
		CreatedAt: c.GetCreatedAt(), StartedAt: c.GetStartedAt(),
		ExitCode: c.GetExitCode(), Reason: c.GetReason(), Message: c.GetMessage(), Labels: c.GetLabels(),
	}
}

// Version implements the CRI.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "critest", RuntimeVersion: "1.0", RuntimeApiVersion: "v1"}, nil
}

// ListContainers implements the CRI.
func (r *Runtime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListContainersResponse{}
	for _, c := range r.sorted() {
		out.Containers = append(out.Containers, &runtimeapi.Container{
			Id: c.GetId(), Metadata: c.GetMetadata(), State: c.GetState(), CreatedAt: c.GetCreatedAt(), Labels: c.GetLabels(),
		})
	}
	return out, nil
}

// ContainerStatus implements the CRI.
func (r *Runtime) ContainerStatus(_ context.Context, request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[request.GetContainerId()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no container %s", request.GetContainerId())
	}
	return &runtimeapi.ContainerStatusResponse{Status: clone(c)}, nil
}

// ExecSync implements the CRI.
func (r *Runtime) ExecSync(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	r.mu.Lock()
	exec := r.exec
	r.mu.Unlock()
	if exec == nil {
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	return exec(ctx, request)
}

// GetContainerEvents implements the CRI.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, server grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	switch r.events {
	case Unimplemented:
		return status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
	case Ended:
		return nil
	}
	const room = 1000
	stream := make(chan *runtimeapi.ContainerEventResponse, room)
	r.mu.Lock()
	r.streams[stream] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.streams, stream)
		r.mu.Unlock()
	}()
	for {
		select {
		case <-server.Context().Done():
			return server.Context().Err()
		case event := <-stream:
			if err := server.Send(event); err != nil {
				return fmt.Errorf("send an event: %w", err)
			}
		}
	}
}
