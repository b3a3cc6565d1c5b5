// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uistream opens the web page and reads its stream in tests.
package uistream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/web/loopback"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

// Event is an event of a stream.
type Event struct {
	// Name is pods, markers, sets, ready or end.
	Name string
	// Data is its JSON.
	Data []byte
}

// Reader reads events.
type Reader struct{ scanner *bufio.Scanner }

// NewReader reads the events of the body of a response.
func NewReader(body io.Reader) *Reader {
	r := &Reader{scanner: bufio.NewScanner(body)}
	r.scanner.Buffer(nil, maxEvent)
	return r
}

// Next waits for the next event. It returns false after the end of the stream.
func (r *Reader) Next() (Event, bool) {
	var e Event
	for r.scanner.Scan() {
		line := r.scanner.Bytes()
		name, isName := bytes.CutPrefix(line, []byte("event: "))
		data, isData := bytes.CutPrefix(line, []byte("data: "))
		switch {
		case len(line) == 0 && e.Name != "":
			return e, true
		case isName:
			e.Name = string(name)
		case isData:
			e.Data = bytes.Clone(data)
		}
	}
	return e, false
}

// Stream is a Reader that follows the state which the events describe.
type Stream struct {
	tb     testing.TB
	reader *Reader
	// Pods are those that the events read so far have left, by key.
	Pods map[string]model.Pod
	// Markers are the last markers.
	Markers []model.Marker
	// Sets are the last sets.
	Sets model.Sets
}

// Open connects to the stream of a server. The query may be empty. The stream is closed with the
// test.
func Open(tb testing.TB, client *http.Client, base, query string) *Stream {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, base+"/api/v1/stream?"+query, http.NoBody)
	expect.NoError(tb, err)
	response, err := client.Do(request)
	expect.NoError(tb, err)
	tb.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		tb.Fatalf("stream: status %s: %s", response.Status, body)
	}
	return New(tb, response.Body)
}

// maxEvent is the maximum size of an event.
const maxEvent = 16 << 20

// New reads the events of the body of a response.
func New(tb testing.TB, body io.Reader) *Stream {
	return &Stream{tb: tb, reader: NewReader(body), Pods: map[string]model.Pod{}}
}

// Next waits for the next event and applies it. It returns false after the end of the stream.
func (s *Stream) Next() (Event, bool) {
	s.tb.Helper()
	e, ok := s.reader.Next()
	if ok {
		s.apply(e)
	}
	return e, ok
}

func (s *Stream) apply(e Event) {
	s.tb.Helper()
	switch e.Name {
	case "pods":
		pods := Decode[model.Pods[model.Pod]](s.tb, e)
		if pods.Reset {
			clear(s.Pods)
		}
		for i := range pods.Pods {
			s.Pods[pods.Pods[i].Key] = pods.Pods[i]
		}
		for _, key := range pods.Removed {
			delete(s.Pods, key)
		}
	case "markers":
		s.Markers = Decode[model.Markers](s.tb, e).Markers
	case "sets":
		s.Sets = Decode[model.Sets](s.tb, e)
	}
}

// Until reads events until the condition is true after one of them. It fails the test at the end of
// the stream.
func (s *Stream) Until(what string, condition func(Event) bool) Event {
	s.tb.Helper()
	for {
		e, ok := s.Next()
		switch {
		case ok && condition(e):
			return e
		case !ok || e.Name == "end":
			s.tb.Fatalf("the stream ended with %q before %s; pods: %v", e.Data, what, slices.Sorted(maps.Keys(s.Pods)))
		}
	}
}

// Ready reads the whole state.
func (s *Stream) Ready() {
	s.tb.Helper()
	s.Until("ready", func(e Event) bool { return e.Name == "ready" })
}

// End reads until the stream ends, and returns the reason.
func (s *Stream) End() string {
	s.tb.Helper()
	for {
		e, ok := s.Next()
		if e.Name == "end" {
			return Decode[model.End](s.tb, e).Reason
		}
		if !ok {
			s.tb.Fatal("the stream ended without a reason")
		}
	}
}

// Decode returns the data of the event.
func Decode[T any](tb testing.TB, e Event) T {
	tb.Helper()
	var value T
	expect.NoErrorf(tb, json.Unmarshal(e.Data, &value), "event %s", e.Name)
	return value
}

// Visitor is a client that has opened the page.
type Visitor struct {
	// Client sends the session of the page.
	Client *http.Client
	// Base is the URL without a slash at the end.
	Base string
}

// Visit reads the URL from the output of the command, and opens the page.
func Visit(ctx context.Context, output io.Reader) (*Visitor, error) {
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read the URL: %w", err)
	}
	return Enter(ctx, strings.TrimSpace(line))
}

// Enter opens the page whose URL a command has printed.
func Enter(ctx context.Context, address string) (*Visitor, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parse the URL: %w", err)
	}
	fragment, err := url.ParseQuery(parsed.Fragment)
	if err != nil {
		return nil, fmt.Errorf("parse the fragment of %s: %w", address, err)
	}
	transport := &withHeader{Transport: &http.Transport{}}
	v := &Visitor{Client: &http.Client{Transport: transport}, Base: parsed.Scheme + "://" + parsed.Host}
	status, body, err := v.Try(ctx, parsed.RequestURI())
	if err == nil && (status != http.StatusOK || !strings.Contains(body, "<title>Seamark</title>")) {
		err = fmt.Errorf("page: status %d: %s", status, body)
	}
	if err != nil {
		return v, err
	}
	transport.name, transport.value = loopback.KeyHeader, fragment.Get("key")
	status, body, err = v.do(ctx, http.MethodPost, loopback.EnterPath)
	if err != nil {
		return v, err
	}
	var entry loopback.Entry
	if err := json.Unmarshal([]byte(body), &entry); err != nil || status != http.StatusOK {
		return v, fmt.Errorf("enter: status %d: %s", status, body)
	}
	transport.name, transport.value = loopback.SessionHeader, entry.Session
	return v, nil
}

// withHeader adds a header to all requests, if it has a name.
type withHeader struct {
	*http.Transport
	name, value string
}

// RoundTrip implements http.RoundTripper.
func (h *withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.name != "" {
		r = r.Clone(r.Context())
		r.Header.Set(h.name, h.value)
	}
	return h.Transport.RoundTrip(r) //nolint:wrapcheck // a transport returns the errors of another
}

// Try requests a path.
func (v *Visitor) Try(ctx context.Context, path string) (status int, body string, err error) {
	return v.do(ctx, http.MethodGet, path)
}

func (v *Visitor) do(ctx context.Context, method, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, v.Base+path, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("request %s: %w", path, err)
	}
	response, err := v.Client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("request %s: %w", path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return response.StatusCode, string(text), nil
}
