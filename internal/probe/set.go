// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// tries is how often a probe is run that gives no answer.
const tries = 3

// Set is a prober for every kind of target: one prober for each handler.
type Set map[Handler]Prober

var _ Prober = Set(nil)

// Probe runs the prober of the target's handler. Where that could not tell, it is asked
// again at once, up to three times in all and for as long as ctx lasts, as the kubelet asks
// its own; the error is the last one's. So a probe that gets no answer may take three times
// its timeout. A handler without a prober is an error.
func (s Set) Probe(ctx context.Context, target Target) (Outcome, error) {
	prober, ok := s[target.Handler]
	if !ok {
		return Outcome{}, fmt.Errorf("no prober for the handler %q", target.Handler)
	}
	var outcome Outcome
	var err error
	for range tries {
		if outcome, err = prober.Probe(ctx, target); err == nil || ctx.Err() != nil {
			break
		}
	}
	return outcome, err
}
