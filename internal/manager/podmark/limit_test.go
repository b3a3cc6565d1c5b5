// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// drive simulates a pod whose marks need a write at the start and again each time that reaction
// has passed after a write, and returns the times of the writes of the first span.
func drive(l *limit, reaction func(write int) time.Duration, span time.Duration) []time.Duration {
	start := time.Unix(1_700_000_000, 0)
	var writes []time.Duration
	for at := time.Duration(0); at < span; {
		if wait, _ := l.wait(start.Add(at)); wait > 0 {
			at += wait
			continue
		}
		l.written(start.Add(at))
		writes = append(writes, at)
		l.unneeded(start.Add(at))
		at += reaction(len(writes))
	}
	return writes
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func seconds(all ...float64) []time.Duration {
	var times []time.Duration
	for _, s := range all {
		times = append(times, time.Duration(s*float64(time.Second)))
	}
	return times
}

func TestLimitBacksOffInALoop(t *testing.T) {
	got := drive(&limit{}, always(0), 100*time.Second)
	expect.Equal(t, "times of writes", seconds(0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 61, 91), got)
}

func TestLimitDoesNotDelayOrdinaryChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		period time.Duration
		writes int
	}{
		"every 100 milliseconds": {100 * time.Millisecond, burst},
		"every second":           {time.Second, 37},
		"every 3 seconds":        {3 * time.Second, 73},
		"every 5 seconds":        {5 * time.Second, 10_000},
		"every minute":           {time.Minute, 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			for i, at := range drive(&limit{}, always(tc.period), time.Duration(tc.writes)*tc.period) {
				if want := time.Duration(i) * tc.period; at != want {
					t.Fatalf("write %d at %s, want %s", i, at, want)
				}
			}
		})
	}
}

// A probe changes its state every second for an hour. The quota is used up after 37 writes; then
// there is a write every 5 seconds, although some of them are needed again at once.
func TestLimitOfAFlappingProbe(t *testing.T) {
	for name, reaction := range map[string]func(int) time.Duration{
		"in step":     always(time.Second),
		"out of step": func(write int) time.Duration { return time.Duration(write%10) * time.Second / 10 },
	} {
		t.Run(name, func(t *testing.T) {
			l := &limit{full: time.Unix(1_700_000_000, 0).Add(quota * problems.MarkInterval)}
			writes := drive(l, reaction, time.Hour)
			expect.Equal(t, "writes without a quota", 719, len(writes))
			expect.Equal(t, "cause of the limit", problems.LimitRate, l.why())
		})
	}
	l := &limit{}
	if writes := drive(l, always(time.Second), time.Hour); len(writes) != quota+719 {
		t.Errorf("%d writes, want %d", len(writes), quota+719)
	}
	end := time.Unix(1_700_000_000, 0).Add(time.Hour)
	if rest := l.unneeded(end); rest <= 0 || rest > quota*problems.MarkInterval || l.unneeded(end.Add(rest)) != 0 || !l.unused(end.Add(rest)) {
		t.Errorf("after %s without changes, the limit is %+v, want full buckets", rest, l)
	}
}

func TestLimitRecovers(t *testing.T) {
	l := &limit{}
	loop := drive(l, always(0), 200*time.Second)
	end := time.Unix(1_700_000_000, 0).Add(loop[len(loop)-1])
	if l.why() != problems.LimitLoop {
		t.Fatalf("the loop is limited because of %q", l.why())
	}
	rest := l.unneeded(end)
	expect.Equal(t, "the bucket is full after", burst*fastest, rest)
	if again := l.unneeded(end.Add(rest)); again != 0 || l.why() != "" || l.gap != 0 {
		t.Errorf("after %s without changes, the limit is %+v with %s left, want a full bucket", rest, l, again)
	}
	if later := end.Add(quota * problems.MarkInterval); !l.unused(later) {
		t.Errorf("after %s without changes, the limit is %+v", quota*problems.MarkInterval, l)
	}
}

// FuzzLimit gives the reactions of a pod in tenths of a second. There are never more writes than
// the burst and one per second, nor than the quota and one per problems.MarkInterval, and no write
// is delayed by more than the slowest interval.
func FuzzLimit(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})
	f.Add([]byte{0, 60, 0, 0, 0, 60, 5, 0, 11, 255})
	f.Fuzz(func(t *testing.T, reactions []byte) {
		reaction := func(write int) time.Duration {
			if write > len(reactions) {
				return time.Hour
			}
			return time.Duration(reactions[write-1]) * time.Second / 10
		}
		writes := drive(&limit{}, reaction, time.Hour)
		for i, from := range writes {
			for j, to := range writes[i:] {
				most := min(burst+int((to-from)/fastest), quota+int((to-from)/problems.MarkInterval)) + 1
				if j+1 > most {
					t.Fatalf("%d writes from %s to %s, want at most %d", j+1, from, to, most)
				}
			}
			if i > 0 && from-writes[i-1] > reaction(i)+slowest {
				t.Fatalf("write %d waited for %s", i, from-writes[i-1]-reaction(i))
			}
		}
	})
}

// The cache always has another label than the one that was written, as if another client reset it.
func TestWritesOfAnAlternatingPodAreLimited(t *testing.T) {
	marker := healthyMarker()
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	server := &recorded{}
	r := reconciler(t, server, marker, builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", "Succeeded"))
	now := time.Unix(1_700_000_000, 0)
	r.Now = func() time.Time { return now }
	end := now.Add(10 * time.Minute)
	for now.Before(end) {
		r.expectations.Forget(key)
		result := reconcileOne(t, r, "a")
		why, _ := r.limits.problem(key)
		expect.Equal(t, "the marker gets the limit", why, problemOfPod(r).Limited)
		now = now.Add(min(result.RequeueAfter, time.Second/10) + time.Millisecond)
	}
	// The burst, the backing off, and one write per 30 seconds.
	if n := len(server.labels); n < 20 || n > 5+5+20 {
		t.Errorf("%d writes in 10 minutes, want about 29", n)
	}
	r.forget(key)
	if r.limits.pods.Len() > 0 {
		t.Error("the limit of a deleted pod is kept")
	}
}

// A probe changes its state every second. When the quota is used up, there is a write every 5 seconds,
// with the state of that moment.
func TestWritesOfAFlappingProbeAreLimited(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").
		Label(v1alpha1.ProbeSucceeded, "healthy", "true").Label(v1alpha1.ProbeFailed, "healthy", "false")).Build()
	events := record.NewFakeRecorder(10)
	server := &recorded{}
	r := reconciler(t, server)
	start := time.Unix(1_700_000_000, 0)
	now := start
	r.Now, r.Recorder = func() time.Time { return now }, events
	for ; now.Before(start.Add(2 * time.Minute)); now = now.Add(time.Second) {
		state, value := v1alpha1.ProbeSucceeded, "true"
		if now.Unix()%2 > 0 {
			state, value = v1alpha1.ProbeFailed, "false"
		}
		r.Reader.Client = fakeapi.Client(t, marker, builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", state)).
			WithReturnManagedFields().Build()
		writes := len(server.labels)
		result := reconcileOne(t, r, "a")
		if wrote := len(server.labels) > writes; wrote && server.labels[writes]["healthy"] != value {
			t.Errorf("after %s, wrote %v, want the newest state %s", now.Sub(start), server.labels[writes], value)
		} else if wait := result.RequeueAfter; !wrote && server.labels[writes-1]["healthy"] != value && (wait <= 0 || wait > problems.MarkInterval) {
			t.Errorf("after %s, the write waits for %s", now.Sub(start), wait)
		}
	}
	if n := len(server.labels); n < 50 || n > quota+2*60/5 {
		t.Errorf("%d writes in 2 minutes, want at most %d", n, quota+2*60/5)
	}
	expect.Equal(t, "the marker gets the limit", problems.LimitRate, problemOfPod(r).Limited)
	if event := <-events.Events; !strings.Contains(event, "because they change more often than every 5s: label healthy") || len(events.Events) > 0 {
		t.Errorf("event %q, and %d more", event, len(events.Events))
	}
}

// problemOfPod returns the problem of pod a with marker web.
func problemOfPod(r *Reconciler) problems.Mark {
	return r.Problems.OfMarker(types.NamespacedName{Namespace: "ns", Name: "web"})[types.NamespacedName{Namespace: "ns", Name: "a"}]
}

// TestMarkersOfALimitedPod checks that a limited pod remembers few of the markers that declare its keys, and only those that
// select it: a namespace may have 1,000 others.
func TestMarkersOfALimitedPod(t *testing.T) {
	compiler, pod := plan.NewCompiler(), builders.Pod("ns", "a").Label("app", "web").Build()
	var markers []*plan.Marker
	for i := range 1000 {
		app := "other"
		if i%20 == 0 {
			app = "web"
		}
		marker := builders.Marker("ns", fmt.Sprintf("%s-%d", app, i)).Selector("app", app).
			Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "1")).Build()
		markers = append(markers, compiler.All([]*v1alpha1.PodProbeMarker{marker})...)
	}
	c := change{desired: mark.Marks{mark.Label("role"): {}}}
	found := c.declaring(pod, markers)
	expect.Equal(t, "markers", maxDeclaring, len(found))
	for _, name := range found {
		if !strings.HasPrefix(name, "web-") {
			t.Errorf("marker %s does not select the pod", name)
		}
	}
	var l limit
	for _, each := range [][]string{found[:10], found[5:], {"another"}} {
		before := l.markers.Len()
		copied := l
		l.blame(each)
		if copied.markers.Len() != before || l.markers.Len() > maxDeclaring {
			t.Errorf("%d markers, %d in the copy", l.markers.Len(), copied.markers.Len())
		}
	}
}
