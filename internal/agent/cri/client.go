// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cri is the agent's client of the container runtime: it executes commands in
// containers and tracks which containers run and since when.
package cri

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/version"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// maxMessageBytes is the maximum size of a message from the runtime, except the answers of
	// ExecSync, of which the client keeps only a part.
	maxMessageBytes = 16 << 20
	// callTimeout limits all calls except ExecSync and the event stream.
	callTimeout = 30 * time.Second
	// reachTimeout limits how long a command waits for the connection. It is short, because a
	// command that starts late gets less than its timeout.
	reachTimeout = 500 * time.Millisecond
)

// Client is a client of one container runtime. It reconnects when the runtime restarts. Its
// methods are safe for concurrent use.
type Client struct {
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	exec    *execCaller
	observe func(method string, took time.Duration, err error)
}

// Dial connects to the runtime at an endpoint, unix:///path or an absolute path, and returns
// when the runtime has answered. It fails if the runtime does not answer within 30 seconds or
// before ctx ends, and at once if the server does not implement CRI v1. If observe is not
// nil, it is called after each call to the runtime, concurrently, with the method name
// without its service, the duration and the error. For a stream, it is called when the stream
// has been opened.
func Dial(ctx context.Context, endpoint string, observe func(method string, took time.Duration, err error)) (*Client, error) {
	endpoint, err := endpointOf(endpoint)
	if err != nil {
		return nil, err
	}
	if observe == nil {
		observe = func(string, time.Duration, error) {}
	}
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
		grpc.WithConnectParams(connectParams()),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			start := time.Now()
			err := invoke(ctx, method, request, reply, cc, options...)
			observe(path.Base(method), time.Since(start), err)
			return err
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			start := time.Now()
			stream, err := open(ctx, desc, cc, method, options...)
			observe(path.Base(method), time.Since(start), err)
			return stream, err
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("create client of container runtime at %s: %w", endpoint, err)
	}
	client := &Client{
		conn: conn, runtime: runtimeapi.NewRuntimeServiceClient(conn),
		exec: newExecCaller(strings.TrimPrefix(endpoint, scheme)), observe: observe,
	}
	if _, err := client.Version(ctx, grpc.WaitForReady(true)); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to container runtime at %s: %w", endpoint, err), client.Close())
	}
	return client, nil
}

// connectParams retries quickly: a runtime restarts within seconds.
func connectParams() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 5 * time.Second,
	}
}

// Close closes the connection and ends all calls.
func (c *Client) Close() error {
	c.exec.close()
	return c.conn.Close()
}

// Connected reports whether the connection was usable when it was last used.
func (c *Client) Connected() bool {
	state := c.conn.GetState()
	return state == connectivity.Ready || state == connectivity.Idle
}

// Version returns the runtime's name and version.
func (c *Client) Version(ctx context.Context, options ...grpc.CallOption) (Runtime, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{}, options...)
	if err != nil {
		return Runtime{}, fmt.Errorf("get version of container runtime: %w", err)
	}
	return Runtime{Name: response.GetRuntimeName(), Version: response.GetRuntimeVersion()}, nil
}

// ExecSync executes a command in a container and returns its exit code and at most the first
// 10 KiB each of its stdout and stderr, however long they are. The runtime ends the command
// after the timeout, rounded up to whole seconds. The error wraps context.DeadlineExceeded if the command timed out: if the runtime reports it, or if ctx
// reaches its deadline while the runtime executes the command. It does not if the call never
// reached the runtime, because that is no result of the command: then it has a method
// Unavailable that returns true.
func (c *Client) ExecSync(ctx context.Context, containerID string, command []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error) {
	if err := c.reach(ctx); err != nil {
		// The end of ctx is not a timeout of the command.
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w", containerID, err)
	}
	start := time.Now()
	response, reached, err := c.exec.call(ctx, &runtimeapi.ExecSyncRequest{
		ContainerId: containerID,
		Cmd:         command,
		Timeout:     int64((timeout + time.Second - 1) / time.Second),
	})
	c.observe("ExecSync", time.Since(start), err)
	switch {
	case err == nil:
		return response.GetStdout(), response.GetStderr(), response.GetExitCode(), nil
	case status.Code(err) == codes.Unavailable:
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w", containerID, unavailableError{err})
	case status.Code(err) != codes.DeadlineExceeded && !expired(ctx):
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w", containerID, err)
	case !reached:
		return nil, nil, 0, fmt.Errorf("exec in container %s: container runtime is unreachable: %w", containerID, unavailableError{err})
	default:
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w: %s", containerID, context.DeadlineExceeded, status.Convert(err).Message())
	}
}

// unavailableError is the error of a call that the runtime did not answer.
type unavailableError struct{ error }

// Unavailable reports that the error is not the answer of the runtime.
func (unavailableError) Unavailable() bool { return true }

// Unwrap returns the error of the call.
func (e unavailableError) Unwrap() error { return e.error }

// reach waits while the client connects to the runtime. A call that waits for the connection
// cannot be distinguished from one that the runtime does not end.
func (c *Client) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	for state := c.conn.GetState(); state == connectivity.Idle || state == connectivity.Connecting; state = c.conn.GetState() {
		c.conn.Connect()
		if !c.conn.WaitForStateChange(ctx, state) {
			return unavailableError{errors.New("container runtime is unreachable")}
		}
	}
	return nil
}

// expired reports whether the deadline of ctx has passed. The runtime has the same deadline,
// and its error may arrive before ctx has ended.
func expired(ctx context.Context) bool {
	deadline, set := ctx.Deadline()
	return set && !time.Now().Before(deadline)
}

// list returns all containers on the node.
func (c *Client) list(ctx context.Context) ([]*runtimeapi.Container, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	return response.GetContainers(), nil
}

// status returns the status of a container, or nil if the container does not exist.
func (c *Client) status(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if status.Code(err) == codes.NotFound {
		return nil, nil //nolint:nilnil // a missing container is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("get status of container %s: %w", id, err)
	}
	return response.GetStatus(), nil
}

// events opens the stream of container events, which ends with ctx.
func (c *Client) events(ctx context.Context) (grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse], error) {
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return nil, fmt.Errorf("open stream of container events: %w", err)
	}
	return stream, nil
}

// Runtime identifies a container runtime.
type Runtime struct {
	// Name is the name of the program, such as "containerd" or "cri-o".
	Name string
	// Version is its version as the runtime reports it, such as "v2.2.0" or "1.7.24~ds1".
	Version string
}

// String returns the name and the version.
func (r Runtime) String() string { return r.Name + " " + r.Version }

// broadcasts reports whether the runtime sends each container event to all subscribers. The
// stream of containerd 1.7 delivers an event to only one of them, which may be a subscriber
// that no longer exists, so that each subscriber misses events and takes events from the
// others. The stream of an unknown runtime or version is not used either.
func (r Runtime) broadcasts() bool {
	switch r.Name {
	case "containerd":
		parsed, err := version.ParseGeneric(r.Version)
		return err == nil && parsed.Major() >= 2 //nolint:mnd // the first major version that broadcasts
	case "cri-o":
		return true
	default:
		return false
	}
}
