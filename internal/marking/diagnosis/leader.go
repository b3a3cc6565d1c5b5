// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// leaseDuration is that of a lease without a duration.
const leaseDuration = 15 * time.Second

// Leader returns the holder of a lease of leader-elected programs, which is empty if there is none,
// and when it renewed the lease. It leads until Settle after the end of the lease. Without a leader,
// plans and marks do not change. The lease may be nil.
func Leader(lease *coordinationv1.Lease, now time.Time) (holder string, renewed time.Time, leads bool) {
	if lease == nil {
		return "", time.Time{}, false
	}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	duration := leaseDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}
	return holder, renewed, holder != "" && now.Sub(renewed) <= duration+Settle
}
