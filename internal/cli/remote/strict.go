// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // client-go's Upgrader has its types
	"k8s.io/client-go/transport/spdy"
)

// strict rejects a command without a status. client-go takes a lost SPDY connection for the
// success of the command.
type strict struct{ spdy.Upgrader }

// NewConnection returns the connection of an answer.
func (s strict) NewConnection(response *http.Response) (httpstream.Connection, error) {
	connection, err := s.Upgrader.NewConnection(response)
	if err != nil {
		return nil, err
	}
	return strictConnection{connection}, nil
}

type strictConnection struct{ httpstream.Connection }

// CreateStream returns a stream with the headers.
func (c strictConnection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	stream, err := c.Connection.CreateStream(headers)
	if err != nil || headers.Get(corev1.StreamType) != corev1.StreamTypeError {
		return stream, err
	}
	return &strictStream{Stream: stream}, nil
}

// RemoveStreams removes streams that CreateStream returned.
func (c strictConnection) RemoveStreams(streams ...httpstream.Stream) {
	for _, stream := range streams {
		if wrapped, is := stream.(*strictStream); is {
			stream = wrapped.Stream
		}
		c.Connection.RemoveStreams(stream)
	}
}

// strictStream is the stream on which a status must arrive.
type strictStream struct {
	httpstream.Stream
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
