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
		touched []time.Duration
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_700_000_000, 0)
			b := newBursts()
			for _, at := range tc.touched {
				b.touch("node", start.Add(at))
			}
			b.touch("another", start.Add(tc.now))
			if got := b.take("node", start.Add(tc.now)); got != tc.want {
				t.Errorf("waits %v, want %v", got, tc.want)
			}
			if tc.want == 0 {
				b.touch("node", start.Add(tc.now))
				if got := b.take("node", start.Add(tc.now)); got != quiet {
					t.Errorf("a new burst waits %v, want %v", got, quiet)
				}
			}
		})
	}
}
