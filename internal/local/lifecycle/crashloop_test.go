// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestBackOff(t *testing.T) {
	for name, test := range map[string]struct {
		crashLoop CrashLoop
		// runs is how long each run of the container lasts.
		runs []time.Duration
		// want is how long each restart waits.
		want []time.Duration
	}{
		"kubelet's delays": {
			runs: make([]time.Duration, 8),
			want: []time.Duration{
				0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
				300 * time.Second, 300 * time.Second,
			},
		},
		"shorter delays": {
			crashLoop: CrashLoop{Initial: time.Second, Max: 3 * time.Second},
			runs:      make([]time.Duration, 5),
			want:      []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second},
		},
		"maximum below initial delay": {
			crashLoop: CrashLoop{Max: time.Second},
			runs:      make([]time.Duration, 3),
			want:      []time.Duration{0, time.Second, time.Second},
		},
		"reset after more than ten minutes": {
			runs: []time.Duration{0, 0, 0, crashLoopReset, crashLoopReset + 1, 0},
			want: []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 0, 10 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			b := newBackOff(test.crashLoop)
			var got []time.Duration
			for _, run := range test.runs {
				finished := now.Add(run)
				now = b.until("main", finished)
				got = append(got, now.Sub(finished))
				b.restarted("main", finished, now)
			}
			expect.Equal(t, "delays", test.want, got)
		})
	}
}
