// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
)

// maxAttempts is how often a probe is run until it has a result.
const maxAttempts = 3

// ErrNoWay means that there is no way to the container, for example because a permission is
// missing. Another attempt does not help.
var ErrNoWay = errors.New("the container cannot be reached")

// Set is a prober for targets of every kind. It has one prober per handler.
type Set map[Handler]Prober

var _ Prober = Set(nil)

// Probe runs the prober of the target's handler. If the prober returns an error, Probe
// retries immediately, three attempts in total, as the kubelet does; a probe without a
// result can therefore take three times its timeout. It does not retry after ErrNoWay. Probe returns the error of the last
// attempt, or an error if the handler has no prober.
func (s Set) Probe(ctx context.Context, target Target) (Outcome, error) {
	prober, ok := s[target.Handler]
	if !ok {
		return Outcome{}, fmt.Errorf("no prober for handler %q", target.Handler)
	}
	var outcome Outcome
	var err error
	for range maxAttempts {
		if outcome, err = prober.Probe(ctx, target); err == nil || ctx.Err() != nil || errors.Is(err, ErrNoWay) {
			break
		}
	}
	return outcome, err
}
