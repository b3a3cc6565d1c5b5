// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	clienthttpstream "k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // client-go's Upgrader has its types
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
)

// execProber runs commands in a container.
type execProber struct {
	client    *Client
	container Container
}

// Probe opens a session and runs the command once, as an agent does.
func (p *execProber) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command, err := p.client.start(ctx, p.container, target.Exec.Command)
	if err != nil {
		return probing.Outcome{}, err
	}
	target.ContainerID = p.container.Name
	prober := exec.New(command, 1, nil)
	defer prober.Close()
	return prober.Probe(ctx, target)
}

// command is a command that the API server was asked to run.
type command struct {
	cancel         context.CancelFunc
	stdout, stderr exec.Output
	ended          chan struct{}
	err            error
}

var _ exec.Runner = (*command)(nil)

// start returns when the session is open. The session ends with ctx.
func (c *Client) start(ctx context.Context, container Container, args []string) (*command, error) {
	ctx, cancel := context.WithCancel(ctx)
	request := c.subresource(container.Pod, "exec").VersionedParams(&corev1.PodExecOptions{
		Container: container.Name, Command: args, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec)
	openCtx, stop := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("no session within %s", openTimeout))
	defer stop()
	opening := newUpgrade(openCtx)
	executor, err := executorFor(opening.follow(c.config), request)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("prepare exec: %w", err)
	}
	run := &command{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(run.ended)
		// client-go logs when a stream of a cancelled session ends.
		run.err = executor.StreamWithContext(klog.NewContext(ctx, logr.Discard()),
			remotecommand.StreamOptions{Stdout: &run.stdout, Stderr: &run.stderr})
	}()
	select {
	case <-opening.opened:
		return run, nil
	case <-run.ended:
		if opening.isOpen() {
			return run, nil
		}
		err = opening.cause(run.err)
	case <-openCtx.Done():
		// A request that gets no answer continues until its timeout.
		err = opening.cause(nil)
	}
	cancel()
	return nil, openError(err, "exec", container.Pod)
}

// executorFor returns what kubectl uses: WebSockets, or SPDY if there is no upgrade to them.
func executorFor(config *rest.Config, request *rest.Request) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	fallback, err := remotecommand.NewSPDYExecutorForTransports(transport, strict{upgrader}, http.MethodPost, request.URL())
	if err != nil {
		return nil, err
	}
	first, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(first, fallback, fallsBack)
}

// fallsBack reports whether SPDY is tried after the error, as kubectl decides.
func fallsBack(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// ExecSync waits for the end of the command. It gives up after the timeout, as the runtime would
// end the command then.
func (c *command) ExecSync(ctx context.Context, _ string, _ []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error) {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-c.ended:
	case <-limit.C:
		c.cancel()
		<-c.ended
		return nil, nil, 0, fmt.Errorf("%w: no result within %s", context.DeadlineExceeded, timeout)
	case <-ctx.Done():
		c.cancel()
		<-c.ended
		return nil, nil, 0, context.Cause(ctx)
	}
	var exited utilexec.CodeExitError
	if errors.As(c.err, &exited) {
		return c.stdout.Bytes(), c.stderr.Bytes(), int32(exited.ExitStatus()), nil //nolint:gosec // exit codes are small
	}
	return c.stdout.Bytes(), c.stderr.Bytes(), 0, c.err
}

// strict rejects a command without a status. client-go takes a lost SPDY connection for the
// success of the command.
type strict struct{ spdy.Upgrader }

// NewConnection returns the connection of an answer.
func (s strict) NewConnection(response *http.Response) (clienthttpstream.Connection, error) {
	connection, err := s.Upgrader.NewConnection(response)
	if err != nil {
		return nil, err
	}
	return strictConnection{connection}, nil
}

type strictConnection struct{ clienthttpstream.Connection }

// CreateStream returns a stream with the headers.
func (c strictConnection) CreateStream(headers http.Header) (clienthttpstream.Stream, error) {
	stream, err := c.Connection.CreateStream(headers)
	if err != nil || headers.Get(corev1.StreamType) != corev1.StreamTypeError {
		return stream, err
	}
	return &strictStream{Stream: stream}, nil
}

// RemoveStreams removes streams that CreateStream returned.
func (c strictConnection) RemoveStreams(streams ...clienthttpstream.Stream) {
	for _, stream := range streams {
		if wrapped, is := stream.(*strictStream); is {
			stream = wrapped.Stream
		}
		c.Connection.RemoveStreams(stream)
	}
}

// strictStream is the stream on which a status must arrive.
type strictStream struct {
	clienthttpstream.Stream
	received bool
}

// Read returns an error at the end of an empty stream.
func (s *strictStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	s.received = s.received || n > 0
	if errors.Is(err, io.EOF) && !s.received {
		return n, errors.New("the connection ended without a status of the command")
	}
	return n, err
}
