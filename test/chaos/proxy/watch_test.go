// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestPlanOf(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for name, tc := range map[string]struct {
		fault   Fault
		old     bool
		started time.Duration
		want    plan
	}{
		"delay":                          {fault: Fault{Kind: DelayWatches, Delay: time.Second}, want: plan{delay: time.Second}},
		"of requests":                    {fault: Fault{Kind: Delay, Delay: time.Second}},
		"of others":                      {fault: Fault{Kind: CutWatches, Match: Match{Clients: []string{"other"}}}},
		"cut":                            {fault: Fault{Kind: CutWatches}, started: -1, want: plan{cut: at(0)}},
		"end after the fault is set":     {fault: Fault{Kind: EndWatches, After: 5}, started: -2, want: plan{end: at(5)}},
		"end after the start":            {fault: Fault{Kind: EndWatches, After: 5}, started: 2, want: plan{end: at(7)}},
		"expire one that runs":           {fault: Fault{Kind: Expire}, started: -2, want: plan{expire: at(0)}},
		"expire an old version":          {fault: Fault{Kind: Expire}, old: true, started: 2, want: plan{expire: at(2)}},
		"not a new one of all":           {fault: Fault{Kind: Expire}, started: 2},
		"expire a new one of all, later": {fault: Fault{Kind: Expire, After: 5}, started: 2, want: plan{expire: at(7)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := []*active{{Fault: tc.fault, since: start}}
			got := planOf(list, request{client: "agent", verb: "watch", old: tc.old}, at(tc.started))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	head := func(age time.Duration) view { return view{head: event{at: at(-age), text: []byte("x")}} }
	full := head(0)
	full.full = true
	for name, tc := range map[string]struct {
		plan  plan
		view  view
		want  action
		until time.Time
	}{
		"nothing":                       {want: wait},
		"an event":                      {view: head(0), want: deliver},
		"a full queue":                  {view: full, want: deliver},
		"the API server's end":          {view: view{err: io.EOF}, want: finish},
		"an event before the end":       {view: view{head: head(0).head, err: io.EOF}, want: deliver},
		"an event that is young":        {plan: plan{delay: 5}, view: head(3), want: wait, until: at(2)},
		"an event that is old enough":   {plan: plan{delay: 5}, view: head(5), want: deliver},
		"too many events":               {plan: plan{delay: 5}, view: full, want: overflow},
		"no end before a young event":   {plan: plan{delay: 5}, view: view{head: head(0).head, err: io.EOF}, want: wait, until: at(5)},
		"cut an event":                  {plan: plan{cut: at(0)}, view: head(0), want: cut},
		"cut later":                     {plan: plan{cut: at(1)}, view: head(0), want: deliver},
		"no event to cut":               {plan: plan{cut: at(0)}, want: wait},
		"end before an event":           {plan: plan{end: at(0)}, view: head(0), want: end},
		"end later":                     {plan: plan{end: at(2)}, want: wait, until: at(2)},
		"expire before the end":         {plan: plan{end: at(0), expire: at(0)}, want: expire},
		"wait for what is first":        {plan: plan{end: at(3), expire: at(2)}, want: wait, until: at(2)},
		"end before an event is due":    {plan: plan{delay: 9, end: at(3)}, view: head(0), want: wait, until: at(3)},
		"an event is due before an end": {plan: plan{delay: 2, end: at(3)}, view: head(0), want: wait, until: at(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, until := tc.plan.next(now, tc.view)
			if got != tc.want || !until.Equal(tc.until) {
				t.Errorf("got %d until %s, want %d until %s", got, until.Sub(now), tc.want, tc.until.Sub(now))
			}
		})
	}
}

// formats are the content types of watches.
var formats = []string{"application/json", "application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq"}

// startStream returns a watch with the content type, and its other end.
func startStream(t *testing.T, f *faults, contentType string, limit int) (*stream, *io.PipeWriter) {
	t.Helper()
	format, ok := formatOf(newCodecs(), contentType)
	if !ok {
		t.Fatalf("the format of %s is not known", contentType)
	}
	body, out := io.Pipe()
	s := newStream(t.Context(), stream{request: request{verb: "watch"}, faults: f, format: format, body: body, cut: func() {}}, limit)
	t.Cleanup(func() { _ = s.Close() })
	return s, out
}

// anEvent returns an event of a watch as the API server sends it.
func anEvent(t *testing.T, s *stream) []byte {
	t.Helper()
	// The event with a status is one of any size.
	text, err := s.format.expired()
	expect.NoError(t, err)
	return text
}

// TestFormats checks that events of each format are passed on as they are, and that a client can read
// an event of the proxy.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, contentType := range formats {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			f := newFaults(1)
			s, out := startStream(t, f, contentType, 1<<20)
			one := anEvent(t, s)
			go func() {
				_, _ = out.Write(bytes.Repeat(one, 3))
				_ = out.Close()
			}()
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, bytes.Repeat(one, 3)) {
				t.Fatalf("got %q, %v; want three times %q", got, err, one)
			}
			frame, err := io.ReadAll(s.format.info.StreamSerializer.NewFrameReader(io.NopCloser(bytes.NewReader(one))))
			expect.NoError(t, err)
			var read metav1.WatchEvent
			if _, _, err := s.format.info.StreamSerializer.Decode(frame, nil, &read); err != nil {
				t.Fatal(err)
			}
			object, err := runtime.Decode(s.format.codecs.DecoderToVersion(s.format.info.Serializer, metav1.Unversioned), read.Object.Raw)
			if err != nil || read.Type != "ERROR" || !apierrors.IsResourceExpired(apierrors.FromObject(object)) {
				t.Errorf("got %s with %v, %v", read.Type, object, err)
			}
		})
	}
}

// TestLargeEvents checks the bound of one event.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	for _, contentType := range formats {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			s, out := startStream(t, newFaults(1), contentType, 1<<20)
			large := bytes.Repeat([]byte("0"), maxEvent+1)
			switch {
			case strings.HasSuffix(contentType, "json"):
				large[0] = '"'
			case strings.HasSuffix(contentType, "watch"):
				copy(large, "\x7f\x00\x00\x00")
			default:
				copy(large, "\x5a\x7f\x00\x00\x00") // A byte string.
			}
			go func() { _, _ = out.Write(large); _ = out.Close() }()
			if _, err := io.ReadAll(s); !errors.Is(err, errTooLarge) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestDelayInOrder checks when delayed events arrive, and that they arrive at once without the fault.
func TestDelayInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults(1)
		f.set([]Fault{{Kind: DelayWatches, Delay: 30 * time.Second}})
		s, out := startStream(t, f, formats[0], 1<<20)
		start := time.Now()
		go func() {
			for _, text := range []string{"1\n", "2\n", "3\n", "4\n"} {
				_, _ = io.WriteString(out, text)
				<-time.After(time.Second)
			}
		}()
		reads := func(want string, at time.Duration) {
			t.Helper()
			buffer := make([]byte, 9)
			n, err := s.Read(buffer)
			if got := string(buffer[:n]); err != nil || got != want || time.Since(start) != at {
				t.Errorf("got %q, %v after %s; want %q after %s", got, err, time.Since(start), want, at)
			}
		}
		reads("1\n", 30*time.Second)
		reads("2\n", 31*time.Second)
		f.set(nil)
		reads("3\n", 31*time.Second)
		reads("4\n", 31*time.Second)
		if got := f.counts[DelayWatches]; got != (Count{Hits: 1}) {
			t.Errorf("counts %v", got)
		}
	})
}

// TestOverflow checks that a delayed watch ends when it holds too much.
func TestOverflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFaults(1)
		f.set([]Fault{{Kind: DelayWatches, Delay: time.Minute}})
		s, out := startStream(t, f, formats[0], 10)
		start := time.Now()
		go func() {
			for {
				if _, err := io.WriteString(out, `"12"`+"\n"); err != nil {
					return
				}
			}
		}()
		if got, err := io.ReadAll(s); err != nil || len(got) != 0 || time.Since(start) != 0 {
			t.Errorf("got %q, %v after %s", got, err, time.Since(start))
		}
		if v := s.queue.look(); !v.full || s.queue.size > 10+5 {
			t.Errorf("the queue holds %d bytes", s.queue.size)
		}
		_ = s.body.Close()
	})
}
