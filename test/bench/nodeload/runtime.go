// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// started is when all containers were started, in nanoseconds since 1970.
const started = 1_700_000_000_000_000_000

// runtime is a container runtime whose containers run forever and whose commands succeed.
// It counts the calls that it receives.
type runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer

	// pods is how many pods it has, with one container each.
	pods int

	mu    sync.Mutex
	calls map[string]int
}

// count counts a call.
func (r *runtime) count(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[method]++
}

// counted returns the number of calls per method.
func (r *runtime) counted() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

// labelsOf returns the labels of a pod's container.
func labelsOf(pod int) map[string]string {
	return map[string]string{
		"io.kubernetes.pod.namespace":  Namespace,
		"io.kubernetes.pod.name":       PodName(pod),
		"io.kubernetes.pod.uid":        PodUID(pod),
		"io.kubernetes.container.name": Container,
	}
}

// Version identifies a runtime that sends container events to all subscribers.
func (r *runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	r.count("Version")
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: "v2.2.0", RuntimeApiVersion: "v1"}, nil
}

// ListContainers returns all containers.
func (r *runtime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.count(ListMethod)
	response := &runtimeapi.ListContainersResponse{}
	for pod := range r.pods {
		response.Containers = append(response.Containers, &runtimeapi.Container{
			Id: ContainerID(pod), Metadata: &runtimeapi.ContainerMetadata{Name: Container},
			State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: started, Labels: labelsOf(pod),
		})
	}
	return response, nil
}

// ContainerStatus returns a running container.
func (r *runtime) ContainerStatus(_ context.Context, request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	r.count("ContainerStatus")
	var pod int
	if _, err := fmt.Sscanf(request.GetContainerId(), containerIDFormat, &pod); err != nil || pod >= r.pods {
		return nil, status.Errorf(codes.NotFound, "no container %s", request.GetContainerId())
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: ContainerID(pod), Metadata: &runtimeapi.ContainerMetadata{Name: Container},
		State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: started, StartedAt: started, Labels: labelsOf(pod),
	}}, nil
}

// GetContainerEvents opens a stream without events.
func (r *runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	r.count("GetContainerEvents")
	<-stream.Context().Done()
	return stream.Context().Err()
}

// ExecSync succeeds at once.
func (r *runtime) ExecSync(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if request.GetContainerId() != floorContainer {
		r.count("ExecSync")
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte("players: 0\n")}, nil
}
