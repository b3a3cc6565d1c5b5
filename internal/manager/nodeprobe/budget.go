// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"time"

	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// reducedFor is how long the budget of a node's plan stays reduced after the API server refused a
// larger plan. The cause may be gone by then: for example, the report on the node was too large.
const reducedFor = 10 * time.Minute

// reduction is a reduced budget of a node's plan. The zero value reduces nothing.
type reduction struct {
	maxBytes int
	until    time.Time
}

// at returns the budget of the plan, and for how long it stays reduced.
func (r reduction) at(now time.Time) (maxBytes int, reduced time.Duration) {
	if reduced = r.until.Sub(now); reduced > 0 {
		return r.maxBytes, reduced
	}
	return plan.MaxBytes, 0
}
