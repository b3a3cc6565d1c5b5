// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cri is the agent's narrow view of the container runtime: it runs commands in
// containers, and knows which containers run and since when.
package cri

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// maxMessageBytes is the longest message taken from the runtime: twice the 16 MiB
	// which containerd keeps of one stream of a command, and its envelope.
	maxMessageBytes = 33 << 20
	// callTimeout bounds the calls that ask the runtime for what it knows.
	callTimeout = 30 * time.Second
)

// Client speaks to one container runtime over its socket. It connects again by itself
// when the runtime restarts. Its methods may be called from many goroutines.
type Client struct {
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
}

// Dial connects to the runtime at an endpoint, unix:///path or a bare path, and returns
// once it has answered. None within 30 seconds, or before ctx ends, is an error that says
// what hindered it; a server without the CRI v1 is one at once. Where called is not nil, it is
// called after each call to the runtime, from many goroutines, with the method's short
// name, how long the answer took, and its error. Of a stream that is its opening.
func Dial(ctx context.Context, endpoint string, called func(method string, took time.Duration, err error)) (*Client, error) {
	endpoint, err := endpointOf(endpoint)
	if err != nil {
		return nil, err
	}
	if called == nil {
		called = func(string, time.Duration, error) {}
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
			called(path.Base(method), time.Since(start), err)
			return err
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			start := time.Now()
			stream, err := open(ctx, desc, cc, method, options...)
			called(path.Base(method), time.Since(start), err)
			return stream, err
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("make a client of the runtime at %s: %w", endpoint, err)
	}
	client := &Client{conn: conn, runtime: runtimeapi.NewRuntimeServiceClient(conn)}
	if _, err := client.version(ctx, grpc.WaitForReady(true)); err != nil {
		return nil, errors.Join(fmt.Errorf("dial the runtime at %s: %w", endpoint, err), conn.Close())
	}
	return client, nil
}

// connectParams tries a local socket again soon: a restart takes a runtime seconds.
func connectParams() grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 5 * time.Second,
	}
}

// Close ends the connection and all calls on it.
func (c *Client) Close() error { return c.conn.Close() }

// Connected reports whether the runtime was there when last heard of.
func (c *Client) Connected() bool {
	state := c.conn.GetState()
	return state == connectivity.Ready || state == connectivity.Idle
}

// Version returns the runtime's name and version, such as "containerd v2.2.0".
func (c *Client) Version(ctx context.Context) (string, error) { return c.version(ctx) }

func (c *Client) version(ctx context.Context, options ...grpc.CallOption) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{}, options...)
	if err != nil {
		return "", fmt.Errorf("ask for the runtime's version: %w", err)
	}
	return response.GetRuntimeName() + " " + response.GetRuntimeVersion(), nil
}

// ExecSync runs a command in a container and returns what it wrote and how it exited.
// The runtime ends the command after the timeout, counted in whole seconds. An error
// wraps context.DeadlineExceeded when the command timed out: when the runtime says so,
// and when ctx reaches its deadline while the runtime is at work. It does not when the
// call never reached the runtime, of which nothing about the container follows.
func (c *Client) ExecSync(ctx context.Context, containerID string, command []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error) {
	var runtime peer.Peer
	response, err := c.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{
		ContainerId: containerID,
		Cmd:         command,
		Timeout:     int64((timeout + time.Second - 1) / time.Second),
	}, grpc.Peer(&runtime))
	switch {
	case err == nil:
		return response.GetStdout(), response.GetStderr(), response.GetExitCode(), nil
	case status.Code(err) != codes.DeadlineExceeded && !expired(ctx):
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w", containerID, err)
	case runtime.Addr == nil:
		return nil, nil, 0, fmt.Errorf("exec in container %s: the runtime was not reached: %w", containerID, err)
	default:
		return nil, nil, 0, fmt.Errorf("exec in container %s: %w: %s", containerID, context.DeadlineExceeded, status.Convert(err).Message())
	}
}

// expired tells whether the deadline has passed. The runtime has it too, and what it answers
// to it may arrive before the context here has ended.
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

// status returns what the runtime knows of a container, nil if it knows of none.
func (c *Client) status(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if status.Code(err) == codes.NotFound {
		return nil, nil //nolint:nilnil // a container that is gone is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the status of container %s: %w", id, err)
	}
	return response.GetStatus(), nil
}

// events opens the stream of container events. It ends with ctx.
func (c *Client) events(ctx context.Context) (grpc.ServerStreamingClient[runtimeapi.ContainerEventResponse], error) {
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return nil, fmt.Errorf("open the stream of container events: %w", err)
	}
	return stream, nil
}
