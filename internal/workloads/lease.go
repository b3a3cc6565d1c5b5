// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// foreignName is the name of the lease of OpenKruise's manager, which is held while a manager runs the
// controllers of all kinds.
const foreignName = "kruise-manager"

const (
	// defaultDuration is the duration of a lease that has none.
	defaultDuration = 15 * time.Second
	// clockSkew is how much the clocks of two nodes may differ.
	clockSkew = time.Minute
)

// observation is what is known about the lease of another program. The zero value is that of a
// process that has not seen it yet.
type observation struct {
	renewal time.Time
	// changed is when the renewal was first seen, by the clock of this process.
	changed time.Time
}

// next returns the observation after a look at the lease, which is nil if it does not exist, and
// whether another program holds it. A lease is held as long as it is renewed within its duration.
// Renewals are compared with each other, because clocks differ; the first one that a process sees
// counts unless it is long ago.
func (o observation) next(lease *coordinationv1.Lease, now time.Time) (observation, bool) {
	if lease == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return observation{}, false
	}
	duration := defaultDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}
	renewal := lease.Spec.RenewTime.Time
	if !renewal.Equal(o.renewal) {
		first := o.renewal.IsZero()
		o = observation{renewal: renewal, changed: now}
		if first && now.Sub(renewal) > duration+clockSkew {
			o.changed = renewal
		}
	}
	return o, now.Sub(o.changed) <= duration
}
