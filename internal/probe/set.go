// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// maxAttempts is how often a probe is run until it has a result.
const maxAttempts = 3

// Set is a prober for targets of every kind. It has one prober per handler.
type Set map[Handler]Prober

var _ Prober = Set(nil)

// Probe runs the prober of the target's handler. If the prober returns an error, Probe
// retries immediately, three attempts in total, as the kubelet does; a probe without a
// result can therefore take three times its timeout. Probe returns the error of the last
// attempt, or an error if the handler has no prober.
func (s Set) Probe(ctx context.Context, target Target) (Outcome, error) {
	prober, ok := s[target.Handler]
	if !ok {
		return Outcome{}, fmt.Errorf("no prober for handler %q", target.Handler)
	}
	var outcome Outcome
	var err error
	for range maxAttempts {
		if outcome, err = prober.Probe(ctx, target); err == nil || ctx.Err() != nil {
			break
		}
	}
	return outcome, err
}
