// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"github.com/seamark-dev/seamark/internal/probing"
)

const (
	// confirmTimeout limits how long a connection may take to be confirmed. Container runtimes end a
	// connection without traffic about one second after its client has ended its side.
	confirmTimeout = 5 * time.Second
	// refusalTimeout limits how long the refusal of a connection may arrive after its end.
	refusalTimeout = time.Second
	// idleTimeout is how long an answer may pause before the own side of a one-request connection is
	// ended. A container runtime reports the end of the other side only after that, or a second later.
	idleTimeout = 200 * time.Millisecond
	// maxRefusalBytes limits the text of a refusal.
	maxRefusalBytes = 4 << 10
)

// forwarded is a connection through a port-forward. It is a pipe, which has deadlines, and copies
// between the pipe and the stream of the data.
type forwarded struct {
	net.Conn
	inner    net.Conn
	data     httpstream.Stream
	problems httpstream.Stream
	session  *session
	// received is closed when the first data has arrived, and ended when the other side has ended
	// the connection. refusal is then set if it did not connect.
	received, ended chan struct{}
	refusal         error
	close           sync.Once
	// asked is closed when the first data are sent, or the connection is closed.
	asked chan struct{}
	ask   sync.Once
}

var _ probing.Unconfirmed = (*forwarded)(nil)

// newForwarded returns a connection of the streams. If it carries one request, all of that is sent before
// the answer begins.
func newForwarded(data, problems httpstream.Stream, session *session) *forwarded {
	outer, inner := net.Pipe()
	f := &forwarded{
		Conn: outer, inner: inner, data: data, problems: problems, session: session,
		received: make(chan struct{}), ended: make(chan struct{}), asked: make(chan struct{}),
	}
	go f.watch()
	go func() {
		_, _ = io.Copy(data, inner)
		// The server reads the end of the stream.
		_ = data.Close()
	}()
	go func() {
		answer := &answerWriter{Writer: inner, began: f.received}
		if session.oneRequest {
			answer.idle = func() { _ = data.Close() }
		}
		_, _ = io.Copy(answer, data)
		answer.stop()
		_ = inner.Close()
	}()
	return f
}

// answerWriter closes a channel before the first write, and calls idle when there has been no other
// one for a while.
type answerWriter struct {
	io.Writer
	began chan struct{}
	idle  func()
	timer *time.Timer
	once  sync.Once
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	w.stop()
	n, err := w.Writer.Write(p)
	if err == nil && w.idle != nil {
		w.timer = time.AfterFunc(idleTimeout, w.idle)
	}
	return n, err
}

func (w *answerWriter) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// watch reads why the connection failed, if it did.
func (f *forwarded) watch() {
	defer close(f.ended)
	text, err := io.ReadAll(io.LimitReader(f.problems, maxRefusalBytes))
	switch {
	case len(text) > 0:
		f.refusal = errors.New(refusalOf(string(text)))
		_ = f.inner.Close()
	case err != nil:
		f.refusal = fmt.Errorf("the session was lost: %w", err)
	}
}

// refusalOf returns the last cause in the text of a container runtime, which names its sandboxes.
func refusalOf(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if at := strings.Index(text, "dial tcp"); at >= 0 {
		return text[at:]
	}
	return text
}

// Read returns the refusal instead of the end of a connection that was refused. It waits until something
// is sent, as with a connection that is refused before it exists: what ends before that is for net/http
// an idle connection, and its errors do not say why it has ended.
func (f *forwarded) Read(p []byte) (int, error) {
	<-f.asked
	n, err := f.Conn.Read(p)
	if n == 0 && errors.Is(err, io.EOF) {
		err = f.causeOf(err)
	}
	return n, err
}

// Write returns the refusal if the connection was refused before the data could be sent, and
// io.ErrUnexpectedEOF if it has ended for another reason.
func (f *forwarded) Write(p []byte) (int, error) {
	f.ask.Do(func() { close(f.asked) })
	n, err := f.Conn.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = f.causeOf(io.ErrUnexpectedEOF)
	}
	return n, err
}

// SetDeadline sets the time when reads and writes end. It is no error if the connection has ended: the
// reads and writes report why.
func (f *forwarded) SetDeadline(t time.Time) error {
	if err := f.Conn.SetDeadline(t); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// causeOf returns why the connection was refused, or the error if it was not. The refusal may arrive
// after the end of the connection.
func (f *forwarded) causeOf(err error) error {
	limit := time.NewTimer(refusalTimeout)
	defer limit.Stop()
	select {
	case <-f.ended:
		if f.refusal != nil {
			return f.refusal
		}
	case <-limit.C:
	}
	return err
}

// Refusal returns why the other side did not connect, or nil if it did or nothing is known.
func (f *forwarded) Refusal() error {
	select {
	case <-f.ended:
		return f.refusal
	default:
		return nil
	}
}

// Confirm ends the own side of the connection, and returns nil if the server has accepted it.
func (f *forwarded) Confirm(ctx context.Context) error {
	limit := time.NewTimer(confirmTimeout)
	defer limit.Stop()
	_ = f.data.Close()
	select {
	case <-f.received:
		return nil
	case <-f.ended:
		return f.refusal
	case <-limit.C:
		return fmt.Errorf("connect: %w", os.ErrDeadlineExceeded)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the connection.
func (f *forwarded) Close() error {
	f.close.Do(func() {
		f.ask.Do(func() { close(f.asked) })
		_ = f.Conn.Close()
		_ = f.inner.Close()
		_ = f.data.Reset()
		_ = f.problems.Reset()
		f.session.connection.RemoveStreams(f.data, f.problems)
	})
	return nil
}
