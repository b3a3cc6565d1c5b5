// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/uistream"
)

func pod(name string, state v1alpha1.ProbeState) model.Pod {
	return model.Pod{
		Key: "ns/" + name, Namespace: "ns", Name: name, State: model.State(state), Probes: []model.Probe{{Marker: "m", Probe: "p", State: state}},
	}
}

func pods(count int) []model.Pod {
	var all []model.Pod
	for i := range count {
		all = append(all, pod(fmt.Sprintf("web-%04d", i), v1alpha1.ProbeSucceeded))
	}
	return all
}

var markers = []model.Marker{{Namespace: "ns", Name: "m", Probes: 1}}

func summary(t *testing.T, e uistream.Event) string {
	t.Helper()
	switch e.Name {
	case "pods":
		p := uistream.Decode[model.Pods[model.Pod]](t, e)
		names := fmt.Sprint(len(p.Pods))
		if len(p.Pods) == 1 {
			names = p.Pods[0].Name + " " + string(p.Pods[0].State)
		}
		return fmt.Sprintf("pods reset=%t %s removed=%v", p.Reset, names, p.Removed)
	case "markers":
		m := uistream.Decode[model.Markers](t, e).Markers
		return fmt.Sprintf("markers pods=%d failed=%d", m[0].Pods, m[0].Failed)
	case "sets":
		return fmt.Sprintf("sets %d", len(uistream.Decode[model.Sets](t, e).Sets))
	default:
		return e.Name
	}
}

func (f *fixture) expect(t *testing.T, streams []*uistream.Stream, want ...string) {
	t.Helper()
	for i, stream := range streams {
		for _, w := range want {
			e, ok := stream.Next()
			if got := summary(t, e); !ok || got != w {
				t.Fatalf("stream %d: event %q (%t), want %q", i, got, ok, w)
			}
		}
	}
}

func TestStreamsOfOneScope(t *testing.T) {
	f := start(t, web.Limits{})
	streams := []*uistream.Stream{
		uistream.Open(t, f.server.Client(), f.server.URL, ""), uistream.Open(t, f.server.Client(), f.server.URL, ""),
	}
	all := pods(1200)
	f.source.changes <- web.Change{All: true, Pods: all, Markers: markers}
	f.expect(t, streams, "pods reset=true 500 removed=[]", "pods reset=false 500 removed=[]", "pods reset=false 200 removed=[]",
		"markers pods=1200 failed=0", "ready")
	expect.Equal(t, "pods", 1200, len(streams[0].Pods))

	all[7] = pod("web-0007", v1alpha1.ProbeFailed)
	f.source.changes <- web.Change{Pods: all[:10]}
	f.expect(t, streams, "pods reset=false web-0007 Failed removed=[]", "markers pods=1200 failed=1")

	// Nothing differs, so nothing is sent.
	f.source.changes <- web.Change{All: true, Pods: all, Markers: markers, Removed: []string{"ns/unknown"}}
	f.source.changes <- web.Change{Removed: []string{"ns/web-0007"}}
	f.expect(t, streams, "pods reset=false 0 removed=[ns/web-0007]", "markers pods=1199 failed=0")

	f.source.changes <- web.Change{All: true, Pods: all[:1]}
	for _, removed := range []int{500, 500, 198} {
		for _, stream := range streams {
			e, _ := stream.Next()
			if got := uistream.Decode[model.Pods[model.Pod]](t, e); len(got.Removed) != removed {
				t.Fatalf("%d pods removed, want %d", len(got.Removed), removed)
			}
		}
	}
	f.expect(t, streams, "markers pods=1 failed=0")

	// Equal sets are not sent again.
	for _, sets := range []int{1, 1, 2} {
		f.source.changes <- web.Change{Sets: &model.Sets{Sets: make([]model.Set, sets)}}
	}
	f.expect(t, streams, "sets 1", "sets 2")

	late := uistream.Open(t, f.server.Client(), f.server.URL, "")
	f.expect(t, []*uistream.Stream{late}, "pods reset=true web-0000 Succeeded removed=[]", "markers pods=1 failed=0", "sets 2", "ready")
	if got := slices.Collect(maps.Keys(streams[1].Pods)); !slices.Equal(got, []string{"ns/web-0000"}) {
		t.Errorf("pods %v, want ns/web-0000", got)
	}
	expect.Equal(t, "times the source was opened", 1, f.source.opened.Load())
}

func TestEmptyScope(t *testing.T) {
	f := start(t, web.Limits{})
	stream := uistream.Open(t, f.server.Client(), f.server.URL, "namespace=empty")
	f.source.changes <- web.Change{All: true}
	want := []string{`pods {"reset":true,"pods":[]}`, `markers {"markers":[]}`, "ready {}"}
	for _, w := range want {
		if e, _ := stream.Next(); e.Name+" "+string(e.Data) != w {
			t.Errorf("event %s %s, want %s", e.Name, e.Data, w)
		}
	}
}

// A page that is loaded again soon uses the same view.
func TestScopesOutliveTheirStreams(t *testing.T) {
	for name, test := range map[string]struct {
		linger time.Duration
		want   func(opened, closed int32) bool
	}{
		"longer":  {time.Hour, func(opened, closed int32) bool { return opened == 1 && closed == 0 }},
		"shorter": {time.Nanosecond, func(opened, _ int32) bool { return opened == 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, web.Limits{Linger: test.linger})
			ctx, cancel := context.WithCancel(t.Context())
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL+"/api/v1/stream", http.NoBody)
			response, err := f.server.Client().Do(request)
			expect.NoError(t, err)
			f.source.changes <- web.Change{All: true, Markers: markers}
			uistream.New(t, response.Body).Ready()
			cancel()
			_ = response.Body.Close()
			if test.linger < time.Second {
				await.Until(t, "the view is closed", func(context.Context) (string, error) {
					if f.source.closed.Load() == 0 {
						return "open", nil
					}
					return "", nil
				})
			}
			stream := uistream.Open(t, f.server.Client(), f.server.URL, "")
			if test.linger < time.Second {
				f.source.changes <- web.Change{All: true, Markers: markers}
			}
			stream.Ready()
			if opened, closed := f.source.opened.Load(), f.source.closed.Load(); !test.want(opened, closed) {
				t.Errorf("opened %d times, closed %d times", opened, closed)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(f *fixture)
		want string
	}{
		"source fails": {func(f *fixture) { close(f.source.changes) }, "read: the source has ended"},
		"server stops": {func(f *fixture) { f.handler.Close() }, "the server stops"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, web.Limits{})
			stream := uistream.Open(t, f.server.Client(), f.server.URL, "namespace=ns")
			f.source.changes <- web.Change{All: true, Markers: markers}
			stream.Ready()
			test.act(f)
			expect.Equal(t, "reason", test.want, stream.End())
			if _, more := stream.Next(); more {
				t.Error("the stream goes on after its end")
			}
		})
	}
}

// A page does not connect again after the command has ended.
func TestLastEvent(t *testing.T) {
	f := start(t, web.Limits{})
	stream := uistream.Open(t, f.server.Client(), f.server.URL, "")
	f.source.changes <- web.Change{All: true, Markers: markers}
	stream.Ready()
	f.handler.Close()
	e := stream.Until("end", func(e uistream.Event) bool { return e.Name == "end" })
	want := model.End{Reason: "the server stops", Final: true}
	expect.Equal(t, "the last event", want, uistream.Decode[model.End](t, e))
}

func TestLimits(t *testing.T) {
	f := start(t, web.Limits{Streams: 2})
	open := func() (int, string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL+"/api/v1/stream", http.NoBody)
		response, err := f.server.Client().Do(request)
		expect.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		if response.StatusCode == http.StatusOK {
			return response.StatusCode, ""
		}
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	for i, want := range []int{200, 200, 429} {
		status, body := open()
		if status != want || strings.Contains(body, "too many pages are open") != (want == 429) {
			t.Errorf("stream %d: status %d with %q, want %d", i, status, body, want)
		}
	}
}
