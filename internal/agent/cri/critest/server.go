// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package critest provides a fake container runtime for tests. It serves the part of the CRI
// that the agent uses on a real socket; its containers are entries in a map.
package critest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Events is how a runtime supports the event stream.
type Events int

// Kinds of event support.
const (
	// Streamed means that the runtime sends each event to all subscribers, as containerd 2.
	Streamed Events = iota
	// Unimplemented means that the runtime has no event stream, as containerd 1.6.
	Unimplemented
	// Ended means that each stream ends at once, as in CRI-O with events disabled.
	Ended
	// Shared means that the runtime sends each event to only one subscriber, as containerd 1.7.
	// A subscriber that has gone away still receives one event.
	Shared
)

// identity returns the name and the version of a runtime with this support.
func (e Events) identity() (name, version string) {
	switch e {
	case Unimplemented:
		return "containerd", "1.6.20~ds1"
	case Shared:
		return "containerd", "v1.7.35"
	case Ended:
		return "cri-o", "1.33.1"
	default:
		return "containerd", "v2.2.9"
	}
}

// ExecFunc handles an ExecSync request.
type ExecFunc func(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)

// Runtime is a fake container runtime. Its methods are safe for concurrent use.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	t      *testing.T
	socket string

	mu         sync.Mutex
	events     Events
	server     *grpc.Server
	listener   net.Listener
	exec       ExecFunc
	containers map[string]*runtimeapi.ContainerStatus
	streams    map[*subscriber]struct{}
	shared     chan *runtimeapi.ContainerEventResponse
	fault      FaultFunc
	calls      map[string]int
	created    int
	silent     bool
}

// New starts a runtime that runs until the test ends.
func New(t *testing.T, events Events) *Runtime {
	t.Helper()
	// t.TempDir contains the name of the test, which may be too long for a socket.
	folder, err := os.MkdirTemp("", "cri")
	if err != nil {
		t.Fatalf("create folder for socket: %v", err)
	}
	r := &Runtime{
		t: t, socket: filepath.Join(folder, "cri.sock"), events: events,
		containers: map[string]*runtimeapi.ContainerStatus{},
		streams:    map[*subscriber]struct{}{},
		calls:      map[string]int{},
	}
	r.Start()
	t.Cleanup(func() {
		r.Stop()
		_ = os.RemoveAll(folder)
	})
	return r
}

// Socket returns the path of the socket.
func (r *Runtime) Socket() string { return r.socket }

// Start starts the server, also after Stop.
func (r *Runtime) Start() {
	r.t.Helper()
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		r.t.Fatalf("listen on %s: %v", r.socket, err)
	}
	server := grpc.NewServer(
		grpc.MaxSendMsgSize(64<<20),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := r.called(ctx, info.FullMethod, request); err != nil {
				return nil, err
			}
			return handle(ctx, request)
		}),
		grpc.StreamInterceptor(func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := r.called(stream.Context(), info.FullMethod, nil); err != nil {
				return err
			}
			return handle(service, stream)
		}),
	)
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	r.mu.Lock()
	r.server, r.listener = server, listener
	r.shared = make(chan *runtimeapi.ContainerEventResponse, capacity)
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
}

// Stop ends the server and all its calls, as if the runtime were killed. Containers keep
// running.
func (r *Runtime) Stop() {
	r.mu.Lock()
	server, listener := r.server, r.listener
	if r.shared != nil {
		close(r.shared)
		r.shared = nil
	}
	r.mu.Unlock()
	server.Stop()
	// A server that has not started yet does not close the listener.
	_ = listener.Close()
}

// Calls returns the number of calls per method.
func (r *Runtime) Calls() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

// OnExec sets the handler of ExecSync. By default, commands succeed without output.
func (r *Runtime) OnExec(exec ExecFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = exec
}

// Create creates a container and returns its ID.
func (r *Runtime) Create(c identity.ContainerKey, attempt uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created++
	id := fmt.Sprintf("c%d", r.created)
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

// Run starts a container with the given start time.
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

// Remove removes a container.
func (r *Runtime) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := r.containers[id]
	delete(r.containers, id)
	r.publishAs(id, gone, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
}

// Edit changes the status of a container without an event.
func (r *Runtime) Edit(id string, edit func(*runtimeapi.ContainerStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(r.containers[id])
}

func (r *Runtime) publish(id string, kind runtimeapi.ContainerEventType) {
	r.publishAs(id, r.containers[id], kind)
}

// publishAs sends an event with the statuses of all containers of the pod, as runtimes do.
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

// sorted returns the containers sorted by ID.
func (r *Runtime) sorted() []*runtimeapi.ContainerStatus {
	out := make([]*runtimeapi.ContainerStatus, 0, len(r.containers))
	for _, id := range slices.Sorted(maps.Keys(r.containers)) {
		out = append(out, r.containers[id])
	}
	return out
}

// clone copies the fields that Edit may change.
func clone(c *runtimeapi.ContainerStatus) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		Id: c.GetId(), Metadata: c.GetMetadata(), State: c.GetState(),
		CreatedAt: c.GetCreatedAt(), StartedAt: c.GetStartedAt(),
		ExitCode: c.GetExitCode(), Reason: c.GetReason(), Message: c.GetMessage(), Labels: c.GetLabels(),
	}
}

// Version implements the CRI.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, version := r.events.identity()
	return &runtimeapi.VersionResponse{RuntimeName: name, RuntimeVersion: version, RuntimeApiVersion: "v1"}, nil
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
