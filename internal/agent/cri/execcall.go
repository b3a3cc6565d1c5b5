// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// streamWindow and connectionWindow are how many bytes of answers the runtime may send
	// before they are read, for one call and for all calls.
	streamWindow, connectionWindow = 64 << 10, 1 << 20
	// prefixBytes is the length of the prefix of a gRPC message: a flag that is 1 if the
	// message is compressed, and its length.
	prefixBytes = 5
)

// execCaller calls ExecSync with gRPC's protocol, but reads the answer as a stream. The gRPC
// library holds a whole message in memory before it decodes it, and an answer has up to 16 MiB
// each of stdout and stderr.
type execCaller struct {
	http *http.Transport

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

// newExecCaller returns a caller that connects to a socket when it is needed.
func newExecCaller(socket string) *execCaller {
	c := &execCaller{conns: map[net.Conn]bool{}}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	c.http = &http.Transport{
		Protocols:          &protocols,
		DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow,
		},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			return c.track(conn)
		},
	}
	return c
}

// trackedConn is a connection that close ends.
type trackedConn struct {
	net.Conn
	caller *execCaller
}

// Close closes the connection.
func (t trackedConn) Close() error {
	t.caller.mu.Lock()
	delete(t.caller.conns, t.Conn)
	t.caller.mu.Unlock()
	return t.Conn.Close()
}

func (c *execCaller) track(conn net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	c.conns[conn] = true
	return trackedConn{Conn: conn, caller: c}, nil
}

func (c *execCaller) close() {
	c.mu.Lock()
	c.closed = true
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.http.CloseIdleConnections()
}

// call executes a command. Stdout and stderr of the response are truncated to maxOutputBytes.
// reached reports whether there was a connection to the runtime. The error has a gRPC status.
func (c *execCaller) call(ctx context.Context, request *runtimeapi.ExecSyncRequest) (response *runtimeapi.ExecSyncResponse, reached bool, err error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	post, err := newPost(ctx, runtimeapi.RuntimeService_ExecSync_FullMethodName, request)
	if err != nil {
		return nil, false, status.Error(codes.Internal, err.Error())
	}
	answer, err := c.http.RoundTrip(post)
	if err != nil {
		return nil, connected.Load(), transportError(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	response, err = readAnswer(answer)
	if err != nil && status.Code(err) == codes.Unknown {
		if _, ok := status.FromError(err); !ok {
			err = transportError(ctx, err)
		}
	}
	return response, true, err
}

// transportError returns the status of a call that ended without an answer.
func transportError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case expired(ctx):
		// The runtime has ended the call at the same deadline.
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}

// newPost returns the HTTP request of a gRPC call.
func newPost(ctx context.Context, method string, request proto.Message) (*http.Request, error) {
	body, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, prefixBytes), request)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	binary.BigEndian.PutUint32(body[1:], uint32(len(body)-prefixBytes)) //nolint:gosec // a command is shorter
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+method, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	post.Header.Set("Content-Type", "application/grpc")
	post.Header.Set("Te", "trailers")
	if deadline, set := ctx.Deadline(); set {
		const millisecond = "m"
		// Rounded up, so that the runtime does not end the call before the client.
		left := max(time.Until(deadline).Milliseconds(), 0) + 1
		post.Header.Set("Grpc-Timeout", strconv.FormatInt(left, 10)+millisecond)
	}
	return post, nil
}

// readAnswer reads the answer to a call. The error has a gRPC status, unless the answer could
// not be read.
func readAnswer(answer *http.Response) (*runtimeapi.ExecSyncResponse, error) {
	if answer.StatusCode != http.StatusOK {
		return nil, status.Error(codes.Unavailable, "unexpected HTTP status "+answer.Status)
	}
	// An error without a message is in the header.
	if err := grpcStatus(answer.Header); err != nil {
		return nil, err
	}
	response, malformed := decodeMessage(answer.Body)
	// The trailer follows the body.
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if err := grpcStatus(answer.Trailer); err != nil {
		return nil, err
	}
	if answer.Trailer.Get("Grpc-Status") == "" {
		return nil, io.ErrUnexpectedEOF
	}
	if malformed != nil {
		return nil, status.Errorf(codes.Internal, "decode answer: %v", malformed)
	}
	return response, nil
}

// grpcStatus returns the error in a header or trailer of gRPC, or nil if there is none.
func grpcStatus(header http.Header) error {
	text := header.Get("Grpc-Status")
	if text == "" || text == "0" {
		return nil
	}
	code, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return status.Errorf(codes.Internal, "malformed status %q", text)
	}
	message, err := url.PathUnescape(header.Get("Grpc-Message"))
	if err != nil {
		message = header.Get("Grpc-Message")
	}
	return status.Error(codes.Code(code), strings.ToValidUTF8(message, "\ufffd"))
}
