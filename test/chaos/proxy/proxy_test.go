// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
)

// eachVersion runs a test with both versions of HTTP.
func eachVersion(t *testing.T, test func(*server, *client)) {
	t.Helper()
	for version := range protocols {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Options{})
			test(s, s.client("agent", version))
		})
	}
}

// isReset reports whether a connection was reset. Only one of the calls that use the connection gets
// that as the error; if it was a write, then the read gets an EOF.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isEOF reports whether a watch ended without an error.
func isEOF(err error) bool { return errors.Is(err, io.EOF) }

const (
	added   = `{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}}`
	gone    = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}}` + "\n"
	nothing = "200 "
)

func TestForward(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		body := "k8s\x00 any bytes \xff"
		c.is(http.MethodPost, pods+"?fieldManager=a%20b", body, "200 "+body)
		got := s.request()
		if got.RequestURI != pods+"?fieldManager=a%20b" || got.Proto != "HTTP/2.0" {
			t.Errorf("got %s %s", got.Proto, got.RequestURI)
		}
		for name, want := range map[string]string{
			"Authorization": "Bearer agent's token", "User-Agent": "agent/v1", "X-Forwarded-For": "", "Accept-Encoding": "gzip",
		} {
			expect.Equal(t, fmt.Sprintf("header %s", name), want, got.Header.Get(name))
		}
		w := c.watch("")
		s.events <- added
		w.reads(added+"\n", nil)
		close(s.events)
		w.reads("", isEOF)
		s.injected("[]")
	})
}

func TestDown(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		other := s.client("manager", "HTTP/2.0")
		theirs, ours := other.watch(""), c.watch("")
		s.set(Fault{Kind: Down, Match: Match{Clients: []string{"agent"}}})
		ours.reads("", isReset)
		s.injected("[Down:{1 1}]")
		for range 2 {
			if _, err := c.text(http.MethodGet, pods, ""); !isReset(err) {
				t.Errorf("the error of a new connection is %v", err)
			}
		}
		s.events <- added
		theirs.reads(added+"\n", nil)
		s.set(Fault{Kind: Down})
		theirs.reads("", isReset)
		if _, err := other.text(http.MethodGet, pods, ""); !isReset(err) {
			t.Errorf("the error of a new connection is %v", err)
		}
		s.proxy.Clear()
		c.is(http.MethodPost, pods, "x", "200 x")
		other.is(http.MethodGet, pods, "", nothing)
	})
}

func TestDownRequests(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		s.set(Fault{Kind: Down, Match: Match{Resources: []string{"leases"}, Verbs: []string{"create"}}})
		if _, err := c.text(http.MethodPost, leases, "x"); !isReset(err) {
			t.Errorf("the error is %v", err)
		}
		c.is(http.MethodGet, leases, "", nothing)
		c.is(http.MethodPost, pods, "x", "200 x")
		if got := s.writes.Load(); got != 1 {
			t.Errorf("%d writes took effect", got)
		}
		s.injected("[Down:{1 0}]")
	})
}

func TestDelay(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		s.set(Fault{Kind: Delay, Delay: 50 * time.Millisecond, Match: Match{UserAgents: []string{"agent/"}}})
		start := time.Now()
		c.is(http.MethodPost, pods, "x", "200 x")
		if took := time.Since(start); took < 50*time.Millisecond {
			t.Errorf("the request took %s", took)
		}
		s.injected("[Delay:{1 0}]")
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		for _, tc := range []struct {
			code, after          int
			header, reason, more string
		}{
			{429, 1, "1", "TooManyRequests", `"details":{"retryAfterSeconds":1}`},
			{429, 0, "", "TooManyRequests", `"details":{}`},
			{500, 0, "", "InternalError", `"details":{"causes":`},
			{503, 0, "", "ServiceUnavailable", `"message":"refused by the proxy"`},
		} {
			s.set(Fault{Kind: Refuse, Code: tc.code, RetryAfter: tc.after})
			// A client of client-go would repeat the request.
			response, err := c.do(t.Context(), http.MethodPost, pods, "x")
			expect.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || response.StatusCode != tc.code || response.Header.Get("Retry-After") != tc.header {
				t.Errorf("got %s with the header %v, %v", response.Status, response.Header, err)
			}
			for _, part := range []string{`"kind":"Status"`, `"reason":"` + tc.reason + `"`, tc.more} {
				if !strings.Contains(string(text), part) {
					t.Errorf("%q lacks %q", text, part)
				}
			}
		}
		if s.writes.Load() != 0 {
			t.Error("a write that is refused took effect")
		}
		s.injected("[Refuse:{4 0}]")
	})
}

func TestLoseResponse(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		s.set(Fault{Kind: LoseResponse})
		if _, err := c.text(http.MethodPost, pods, "x"); !isReset(err) {
			t.Errorf("the error is %v", err)
		}
		if got := s.writes.Load(); got != 1 {
			t.Errorf("%d writes took effect", got)
		}
		c.is(http.MethodGet, pods, "", nothing)
		s.injected("[LoseResponse:{1 0}]")
	})
}

func TestCutWatches(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		w := c.watch("")
		s.events <- added
		w.reads(added+"\n", nil)
		s.set(Fault{Kind: CutWatches})
		s.events <- added
		// The reset may overtake the byte after the first half, which the proxy sends last.
		got, err := w.lines.ReadString('\n')
		if half := len(added) / 2; got != added[:half] && got != added[:half+1] || !isReset(err) {
			t.Errorf("got %q and the error %v; want half of %q and a reset", got, err, added)
		}
		s.injected("[CutWatches:{1 0}]")
	})
}

func TestEndWatches(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		w := c.watch("")
		s.set(Fault{Kind: EndWatches})
		w.reads("", isEOF)
		s.set(Fault{Kind: EndWatches, After: time.Millisecond})
		c.watch("").reads("", isEOF)
		s.injected("[EndWatches:{2 0}]")
	})
}

func TestDelayWatches(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		w := c.watch("")
		s.set(Fault{Kind: DelayWatches, Delay: MaxDuration})
		s.events <- added
		s.events <- "{}"
		// The fault counts when the proxy has the first event.
		for s.proxy.Counts()[DelayWatches].Hits == 0 {
			c.is(http.MethodGet, pods, "", nothing)
		}
		s.proxy.Clear()
		w.reads(added+"\n", nil)
		w.reads("{}\n", nil)
		s.injected("[DelayWatches:{1 0}]")
	})
}

func TestExpire(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(s *server, c *client) {
		w := c.watch("&resourceVersion=7")
		s.set(Fault{Kind: Expire})
		w.reads(gone, nil)
		w.reads("", isEOF)
		later := c.watch("&resourceVersion=7")
		later.reads(gone, nil)
		later.reads("", isEOF)
		fresh := c.watch("&sendInitialEvents=true")
		s.events <- added
		fresh.reads(added+"\n", nil)
		c.is(http.MethodGet, pods+"?resourceVersion=0", "", nothing)
		if got, err := c.text(http.MethodGet, pods+"?resourceVersion=7", ""); err != nil || !strings.HasPrefix(got, `410 {"kind":"Status"`) {
			t.Errorf("a list returns %q, %v", got, err)
		}
		s.injected("[Expire:{3 0}]")
	})
}
