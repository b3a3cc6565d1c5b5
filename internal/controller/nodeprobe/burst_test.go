// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"
	"time"
)

func TestBursts(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	every := func(step, until int) []time.Duration {
		var at []time.Duration
		for n := 0; n <= until; n += step {
			at = append(at, ms(n))
		}
		return at
	}
	cases := map[string]struct {
		touched []time.Duration // by pods
		markers []time.Duration // by markers, after those
		now     time.Duration
		want    time.Duration
	}{
		"never touched":                {now: ms(5)},
		"just touched":                 {touched: []time.Duration{0}, now: 0, want: ms(100)},
		"resting":                      {touched: []time.Duration{0}, now: ms(60), want: ms(40)},
		"rested":                       {touched: []time.Duration{0}, now: ms(100)},
		"touched again":                {touched: []time.Duration{0, ms(90)}, now: ms(100), want: ms(90)},
		"restless":                     {touched: every(50, 900), now: ms(920), want: ms(80)},
		"restless, patience nearly up": {touched: every(50, 950), now: ms(960), want: ms(40)},
		"restless, patience up":        {touched: every(50, 1000), now: ms(1000)},
		"a marker":                     {markers: []time.Duration{0}, now: ms(100), want: ms(200)},
		"a marker after a pod":         {touched: []time.Duration{0}, markers: []time.Duration{ms(50)}, now: ms(100), want: ms(250)},
		"markers in a row":             {markers: every(250, 1250), now: ms(1300), want: ms(200)},
		"markers, patience up":         {markers: every(250, 1500), now: ms(1500)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_700_000_000, 0)
			b := newBursts()
			for _, at := range tc.touched {
				b.touch("node", start.Add(at), podRest())
			}
			for _, at := range tc.markers {
				b.touch("node", start.Add(at), markerRest())
			}
			b.touch("another", start.Add(tc.now), podRest())
			if got := b.take("node", start.Add(tc.now)); got != tc.want {
				t.Errorf("waits %v, want %v", got, tc.want)
			}
			if tc.want == 0 {
				b.touch("node", start.Add(tc.now), podRest())
				if got := b.take("node", start.Add(tc.now)); got != podRest().quiet {
					t.Errorf("a new burst waits %v, want %v", got, podRest().quiet)
				}
			}
		})
	}
}
