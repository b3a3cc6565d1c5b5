// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metrics "github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// lookPeriod is how often the guard looks at the lease.
const lookPeriod = 5 * time.Second

// guard closes the gates of the controllers while OpenKruise's manager holds its lease: two programs
// that act on one set undo each other's work.
type guard struct {
	live client.Reader
	// namespace is that of the lease.
	namespace string
	gates     map[string]*workload.Gate
	metrics   *metrics.Metrics
	recorder  record.EventRecorder
	log       logr.Logger
	now       func() time.Time

	seen    observation
	yielded bool
}

// Start looks at the lease until the context ends.
func (g *guard) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		if err := g.look(ctx); err != nil {
			// The gates stay as they are: at the start they are closed.
			g.log.Error(err, "Failed to look at the lease of OpenKruise's manager")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection returns true: only the leader acts.
func (g *guard) NeedLeaderElection() bool { return true }

// look looks at the lease once.
func (g *guard) look(ctx context.Context) error {
	key, lease := types.NamespacedName{Namespace: g.namespace, Name: foreignName}, &coordinationv1.Lease{}
	err := g.live.Get(ctx, key, lease)
	switch {
	case apierrors.IsNotFound(err):
		lease = nil
	case err != nil:
		return fmt.Errorf("get lease %s: %w", key, err)
	}
	var held bool
	g.seen, held = g.seen.next(lease, g.now())
	g.apply(lease, held)
	return nil
}

// apply opens or closes the gates.
func (g *guard) apply(lease *coordinationv1.Lease, held bool) {
	switch {
	case held && !g.yielded:
		g.log.Info("Not running controllers because OpenKruise's manager serves their kinds: migrate as docs/migrate-workloads.md describes",
			"lease", g.namespace+"/"+foreignName, "holder", *lease.Spec.HolderIdentity)
		g.recorder.Eventf(lease, corev1.EventTypeWarning, "SeamarkYields",
			"%s does not run its controllers while %s holds this lease.", Name, *lease.Spec.HolderIdentity)
	case !held && g.yielded:
		g.log.Info("Running controllers because OpenKruise's manager no longer renews its lease",
			"lease", g.namespace+"/"+foreignName)
	}
	g.yielded = held
	for kind, gate := range g.gates {
		gate.Set(!held)
		g.metrics.Yielding(kind, held)
	}
}
