// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		l.settled(start.Add(at))
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
	if diff := cmp.Diff(seconds(0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 61, 91), got); diff != "" {
		t.Errorf("times of writes (-want +got):\n%s", diff)
	}
}

func TestLimitDoesNotDelayOrdinaryChanges(t *testing.T) {
	for name, period := range map[string]time.Duration{
		"every second": time.Second, "every 3 seconds": 3 * time.Second, "every minute": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			for i, at := range drive(&limit{}, always(period), 100*period) {
				if want := time.Duration(i) * period; at != want {
					t.Fatalf("write %d at %s, want %s", i, at, want)
				}
			}
		})
	}
	if got := drive(&limit{}, always(100*time.Millisecond), 450*time.Millisecond); len(got) != 5 {
		t.Errorf("%d of 5 writes in a burst were not delayed", len(got))
	}
}

func TestLimitRecovers(t *testing.T) {
	l := &limit{}
	loop := drive(l, always(0), 200*time.Second)
	end := time.Unix(1_700_000_000, 0).Add(loop[len(loop)-1])
	if !l.limited {
		t.Fatal("the loop is not limited")
	}
	rest := l.settled(end)
	if rest != burst*fastest {
		t.Errorf("the bucket is full after %s, want %s", rest, burst*fastest)
	}
	if again := l.settled(end.Add(rest)); again != 0 || l.limited || l.gap != 0 {
		t.Errorf("after %s without changes, the limit is %+v with %s left, want a full bucket", rest, l, again)
	}
}

// FuzzLimit gives the reactions of a pod in tenths of a second. There are never more writes than
// the burst and one per second, and no write is delayed by more than the slowest interval.
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
				if most := burst + int((to-from)/fastest) + 1; j+1 > most {
					t.Fatalf("%d writes from %s to %s, want at most %d", j+1, from, to, most)
				}
			}
			if i > 0 && from-writes[i-1] > reaction(i)+slowest {
				t.Fatalf("write %d waited for %s", i, from-writes[i-1]-reaction(i))
			}
		}
	})
}
