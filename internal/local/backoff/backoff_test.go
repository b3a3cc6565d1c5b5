// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/local/backoff"
)

func TestDelays(t *testing.T) {
	for name, test := range map[string]struct {
		policy backoff.Policy
		// runs is how long each start of the container lasts.
		runs []time.Duration
		// want is how long each restart waits.
		want []time.Duration
	}{
		"the kubelet's": {
			runs: make([]time.Duration, 8),
			want: []time.Duration{
				0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
				300 * time.Second, 300 * time.Second,
			},
		},
		"shorter": {
			policy: backoff.Policy{Initial: time.Second, Max: 3 * time.Second},
			runs:   make([]time.Duration, 5),
			want:   []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second},
		},
		"a maximum below the first delay": {
			policy: backoff.Policy{Max: time.Second},
			runs:   make([]time.Duration, 3),
			want:   []time.Duration{0, time.Second, time.Second},
		},
		"forgotten after more than ten minutes": {
			runs: []time.Duration{0, 0, 0, backoff.ResetAfter, backoff.ResetAfter + 1, 0},
			want: []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 0, 10 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			var entry backoff.Entry
			var got []time.Duration
			for _, run := range test.runs {
				finished := now.Add(run)
				now = entry.Until(finished)
				got = append(got, now.Sub(finished))
				entry = test.policy.Restarted(entry, finished, now)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}
