// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
)

// Set is a prober for every kind of target: one prober for each handler.
type Set map[Handler]Prober

var _ Prober = Set(nil)

// Probe runs the prober of the target's handler. A handler without one is an error.
func (s Set) Probe(ctx context.Context, target Target) (Outcome, error) {
	prober, ok := s[target.Handler]
	if !ok {
		return Outcome{}, fmt.Errorf("no prober for the handler %q", target.Handler)
	}
	return prober.Probe(ctx, target)
}
