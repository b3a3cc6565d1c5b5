// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// lookPeriod is how often a process looks at the foreign lease.
const lookPeriod = 5 * time.Second

// foreignLease pauses the controllers while OpenKruise's manager, if it is installed, holds its lease:
// two programs that act on one set undo each other's work.
type foreignLease struct {
	live      client.Reader
	namespace string
	pauses    map[string]*reconciler.Pause
	metrics   *metrics.Metrics
	recorder  record.EventRecorder
	log       logr.Logger
	now       func() time.Time

	seen    observation
	yielded bool
}

// Start looks at the lease until the context ends.
func (f *foreignLease) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := f.look(ctx); err != nil {
			// The pauses stay as they are: at the start they are active.
			f.log.Error(err, "Failed to look at the lease of OpenKruise's manager")
		}
	}, lookPeriod)
	return nil
}

// NeedLeaderElection returns true: only the leader acts.
func (f *foreignLease) NeedLeaderElection() bool { return true }

// look looks at the lease once, and pauses or resumes the controllers.
func (f *foreignLease) look(ctx context.Context) error {
	key, lease := types.NamespacedName{Namespace: f.namespace, Name: planning.OpenKruiseLease}, &coordinationv1.Lease{}
	err := f.live.Get(ctx, key, lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get lease %s: %w", key, err)
	}
	var held bool // A lease that does not exist has no holder.
	// What was OpenKruise runs until its lease ends: its webhooks are removed before its manager.
	if f.seen, held = f.seen.next(lease, f.now()); held && !f.yielded {
		config := &admissionregistrationv1.MutatingWebhookConfiguration{}
		err := f.live.Get(ctx, types.NamespacedName{Name: planning.OpenKruiseWebhook}, config)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get MutatingWebhookConfiguration %s: %w", planning.OpenKruiseWebhook, err)
		}
		held = planning.IsOpenKruise(config, f.namespace)
	}
	switch {
	case held && !f.yielded:
		f.log.Info("Not running controllers because OpenKruise's manager serves their kinds: migrate as docs/migrate-from-openkruise.md describes",
			"lease", key.String(), "holder", *lease.Spec.HolderIdentity)
		f.recorder.Eventf(lease, corev1.EventTypeWarning, "SeamarkYields",
			"%s does not run its controllers while %s holds this lease.", Name, *lease.Spec.HolderIdentity)
	case !held && f.yielded:
		f.log.Info("Running controllers because OpenKruise's manager no longer renews its lease",
			"lease", key.String())
	}
	f.yielded = held
	for kind, pause := range f.pauses {
		pause.Set(held)
		f.metrics.Yielding(kind, held)
	}
	return nil
}

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

// next returns the observation after a look at the lease, which is empty if it does not exist, and
// whether another program holds it. A lease is held as long as it is renewed within its duration.
// Renewals are compared with each other, because clocks differ; the first one that a process sees
// counts unless it is long ago.
func (o observation) next(lease *coordinationv1.Lease, now time.Time) (observation, bool) {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
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
