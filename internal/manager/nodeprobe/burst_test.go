// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
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
		pods    []time.Duration // changes of pods
		markers []time.Duration // later changes of markers
		now     time.Duration
		want    time.Duration
	}{
		"no change":                       {now: ms(5)},
		"new change":                      {pods: []time.Duration{0}, now: 0, want: ms(100)},
		"settling":                        {pods: []time.Duration{0}, now: ms(60), want: ms(40)},
		"settled":                         {pods: []time.Duration{0}, now: ms(100)},
		"second change":                   {pods: []time.Duration{0, ms(90)}, now: ms(100), want: ms(90)},
		"repeated changes":                {pods: every(50, 900), now: ms(920), want: ms(80)},
		"repeated changes, limit near":    {pods: every(50, 950), now: ms(960), want: ms(40)},
		"repeated changes, limit reached": {pods: every(50, 1000), now: ms(1000)},
		"marker":                          {markers: []time.Duration{0}, now: ms(100), want: ms(200)},
		"marker after pod":                {pods: []time.Duration{0}, markers: []time.Duration{ms(50)}, now: ms(100), want: ms(250)},
		"repeated markers":                {markers: every(250, 1250), now: ms(1300), want: ms(200)},
		"repeated markers, limit reached": {markers: every(250, 1500), now: ms(1500)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_700_000_000, 0)
			now := start
			r := &Reconciler{Options: Options{Now: func() time.Time { return now }}}
			q := fakeapi.Queue(t)
			touch := func(node string, at time.Duration, debounce debounce) {
				now = start.Add(at)
				r.touch(q, node, debounce)
			}
			for _, at := range tc.pods {
				touch("node", at, afterPod())
			}
			for _, at := range tc.markers {
				touch("node", at, afterMarker())
			}
			touch("another", tc.now, afterPod())
			expect.Equal(t, "waits", tc.want, r.debouncing("node"))
			if tc.want == 0 {
				touch("node", tc.now, afterPod())
				expect.Equal(t, "a new burst waits", afterPod().idle, r.debouncing("node"))
			}
		})
	}
}
