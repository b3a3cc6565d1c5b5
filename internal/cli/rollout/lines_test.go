// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestLines prints the lines of a rollout to a terminal, and to a pipe.
func TestLines(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0:  "1 of 2 pods\n2 of 2 pods \\x1b[2J\ndone\n",
		24: "\r\x1b[K[          ] 1 of 2 po…" + "\r\x1b[K[=====     ] 2 of 2 po…" + "\ndone\n",
		80: "\r\x1b[K[          ] 1 of 2 pods" + "\r\x1b[K[=====     ] 2 of 2 pods \\x1b[2J" + "\ndone\n",
	} {
		var out bytes.Buffer
		l := &lines{out: &out, width: width}
		progress := &planning.Progress{Generation: 2, Observed: 2, Desired: 2, Target: 2}
		expect.NoError(t, l.wait(progress, "1 of 2 pods"))
		expect.NoError(t, l.wait(progress, "1 of 2 pods"))
		progress.UpdatedAvailable = 1
		expect.NoError(t, l.wait(progress, "2 of 2 pods \x1b[2J"))
		expect.NoError(t, l.print("done"))
		l.end()
		expect.Equal(t, "output", want, out.String())
	}
}

func TestBar(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]planning.Progress{
		"[          ]": {Generation: 2, Observed: 1, Desired: 3, Target: 3, UpdatedAvailable: 3},
		"[===       ]": {Desired: 3, Target: 3, UpdatedAvailable: 1},
		"[==========]": {Desired: 3, Target: 1, UpdatedAvailable: 2},
		"[======    ]": {Desired: 3, Available: 2},
	} {
		expect.Equal(t, "bar", want, bar(&p))
	}
	expect.Equal(t, "bar of no pods", "[          ]", bar(&planning.Progress{}))
}
